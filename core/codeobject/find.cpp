// find_code_objects: which container a file is, or has inside.
#include <llvm/Object/Archive.h>
#include <llvm/Object/ELF.h>

#include "core/codeobject/bundle.h"
#include "core/codeobject/code_object.h"
#include "core/codeobject/elf_file.h"
#include "core/codeobject/target_id.h"

namespace kerncap::codeobject {
namespace {

using support::ExitCode;
using support::fail;

constexpr std::string_view elf_magic{"\177ELF", 4};
constexpr std::string_view archive_magic = "!<arch>\n";
constexpr std::string_view rdc_section_prefix = "__CLANG_OFFLOAD_BUNDLE__";
constexpr int deepest_archive = 2;

void find_in(const ByteView& file, int depth, std::vector<FoundCodeObject>& found);

void find_in_host_elf(const ByteView& file, std::vector<FoundCodeObject>& found) {
  const auto elf = open_elf(file);
  if (!elf) return;  // 32-bit or big-endian hosts carry no AMD GPU code
  auto sections = elf->sections();
  if (!sections)
    fail(ExitCode::bad_input, "{}: damaged section table: {}", file.name(), llvm::toString(sections.takeError()));
  for (const auto& section : *sections) {
    if (section.sh_type == llvm::ELF::SHT_NOBITS || section.sh_size == 0) continue;
    auto name = elf->getSectionName(section);
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;  // only a section that can be named can be one of ours
    }
    const bool fatbin = *name == ".hip_fatbin";
    const bool offloading = *name == ".llvm.offloading";
    const bool rdc = name->starts_with(llvm::StringRef(rdc_section_prefix.data(), rdc_section_prefix.size()));
    if (!fatbin && !offloading && !rdc) continue;
    const std::string label(file.name());
    const ByteView content(file.slice(section.sh_offset, section.sh_size, "a section with device code"), file.name());
    if (fatbin) {
      find_in_bundles(content, found);
    } else if (offloading) {
      find_in_offload_binaries(content, found);
    } else {
      std::string entry_id = name->substr(rdc_section_prefix.size()).str();
      if (is_host_entry(entry_id)) continue;
      std::string target = target_of_entry(entry_id);
      found.push_back(make_found(std::move(entry_id), std::move(target), Container::rdc_section, content.bytes()));
    }
  }
  if (sections->empty()) find_in_bundles(file, found);  // section headers stripped: look through the bytes
}

void find_in_archive(const ByteView& file, int depth, std::vector<FoundCodeObject>& found) {
  if (depth >= deepest_archive)
    fail(ExitCode::bad_input, "{}: archives nested deeper than {}", file.name(), deepest_archive);
  auto archive = llvm::object::Archive::create(llvm::MemoryBufferRef(
      llvm::StringRef(file.text().data(), file.size()), llvm::StringRef(file.name().data(), file.name().size())));
  if (!archive) fail(ExitCode::bad_input, "{}: damaged archive: {}", file.name(), llvm::toString(archive.takeError()));
  llvm::Error error = llvm::Error::success();
  for (const auto& child : (*archive)->children(error)) {
    auto buffer = child.getMemoryBufferRef();
    if (!buffer) {
      llvm::consumeError(std::move(error));
      fail(ExitCode::bad_input, "{}: damaged archive member: {}", file.name(), llvm::toString(buffer.takeError()));
    }
    const std::string name = std::string(file.name()) + "(" + buffer->getBufferIdentifier().str() + ")";
    // Members start at even addresses only; LLVM's ELF reader wants eight.
    const llvm::StringRef text = buffer->getBuffer();
    const std::vector<std::byte> aligned(reinterpret_cast<const std::byte*>(text.begin()),
                                         reinterpret_cast<const std::byte*>(text.end()));
    find_in(ByteView(aligned, name), depth + 1, found);
  }
  if (error) fail(ExitCode::bad_input, "{}: damaged archive: {}", file.name(), llvm::toString(std::move(error)));
}

void find_in(const ByteView& file, int depth, std::vector<FoundCodeObject>& found) {
  if (file.starts_with(elf_magic)) {
    if (is_amdgpu_elf(file)) {
      std::string target = parse_code_object(file.bytes(), file.name()).target;
      found.push_back(make_found(target, target, Container::raw, file.bytes()));
    } else {
      find_in_host_elf(file, found);
    }
  } else if (file.starts_with(archive_magic)) {
    find_in_archive(file, depth, found);
  } else if (file.starts_with(bundle_magic) || file.starts_with(compressed_magic)) {
    find_in_bundles(file, found);
  } else if (file.starts_with(offload_binary_magic)) {
    find_in_offload_binaries(file, found);
  }
}

}  // namespace

std::vector<FoundCodeObject> find_code_objects(std::span<const std::byte> file, std::string_view name) {
  std::vector<FoundCodeObject> found;
  find_in(ByteView(file, name), 0, found);
  return found;
}

}  // namespace kerncap::codeobject
