#include "core/codeobject/code_object.h"

#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <set>

#include "core/codeobject/byte_view.h"
#include "core/codeobject/elf_file.h"
#include "core/codeobject/metadata.h"
#include "core/codeobject/target_id.h"

namespace kerncap::codeobject {
namespace {

using support::ExitCode;
using support::fail;
using namespace llvm::ELF;

constexpr std::string_view cuid_prefix = "__hip_cuid_";

std::string message(llvm::Error error) { return llvm::toString(std::move(error)); }

// Code objects before version 4 name their target in e_flags only ("AMDGPU EF_AMDGPU_MACH Values").
std::string target_from_flags(const ByteView& file) {
  auto object = llvm::object::ELFObjectFile<llvm::object::ELF64LE>::create(
      llvm::MemoryBufferRef(llvm::StringRef(file.text().data(), file.size()), "code object"));
  if (!object) {
    llvm::consumeError(object.takeError());
    return "";
  }
  const unsigned flags = object->getPlatformFlags();
  const auto processor = object->tryGetCPUName();
  if (!processor) return "";
  std::string target = processor->str();
  const auto version = file.read<std::uint8_t>(EI_ABIVERSION, "the ELF header");
  if (version == ELFABIVERSION_AMDGPU_HSA_V3) {
    if (flags & EF_AMDGPU_FEATURE_SRAMECC_V3) target += ":sramecc+";
    if (flags & EF_AMDGPU_FEATURE_XNACK_V3) target += ":xnack+";
  } else {
    const unsigned sramecc = flags & EF_AMDGPU_FEATURE_SRAMECC_V4, xnack = flags & EF_AMDGPU_FEATURE_XNACK_V4;
    if (sramecc == EF_AMDGPU_FEATURE_SRAMECC_ON_V4) target += ":sramecc+";
    if (sramecc == EF_AMDGPU_FEATURE_SRAMECC_OFF_V4) target += ":sramecc-";
    if (xnack == EF_AMDGPU_FEATURE_XNACK_ON_V4) target += ":xnack+";
    if (xnack == EF_AMDGPU_FEATURE_XNACK_OFF_V4) target += ":xnack-";
  }
  return target;
}

class Parser {
 public:
  explicit Parser(const ByteView& file) : file_(file) {
    if (!file.starts_with("\177ELF") || !is_amdgpu_elf(file))
      fail(ExitCode::bad_input, "{}: not an AMD GPU code object", file.name());
    auto elf = open_elf(file);
    if (!elf) fail(ExitCode::bad_input, "{}: not a little-endian code object", file.name());
    elf_.emplace(*elf);
  }

  CodeObject parse() {
    // e_ident[EI_ABIVERSION]: 0 is version 2, 1 is version 3, and so on ("AMDGPU ELF ABI Version").
    result_.version = elf_->getHeader().e_ident[EI_ABIVERSION] + 2u;
    read_segments();
    auto sections = elf_->sections();
    if (!sections)
      fail(ExitCode::bad_input, "{}: damaged section table: {}", file_.name(), message(sections.takeError()));
    read_notes(*sections);
    for (const auto& section : *sections)
      if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB) read_symbols(section);
    if (result_.target.empty()) result_.target = target_from_flags(file_);
    std::sort(result_.variables.begin(), result_.variables.end(), [](const Variable& a, const Variable& b) {
      return std::tie(a.address, a.name) < std::tie(b.address, b.name);
    });
    return std::move(result_);
  }

 private:
  void read_segments() {
    auto headers = elf_->program_headers();
    if (!headers)
      fail(ExitCode::bad_input, "{}: damaged program headers: {}", file_.name(), message(headers.takeError()));
    for (const auto& header : *headers) {
      if (header.p_type != PT_LOAD) continue;
      if (!file_.contains(header.p_offset, header.p_filesz) || header.p_filesz > header.p_memsz ||
          header.p_memsz > UINT64_MAX - header.p_vaddr)
        fail(ExitCode::bad_input, "{}: a segment lies outside the file", file_.name());
      result_.segments.push_back({header.p_vaddr, header.p_memsz, header.p_offset, header.p_filesz,
                                  (header.p_flags & PF_X) != 0, (header.p_flags & PF_W) != 0});
    }
  }

  template <typename Container>
  void read_notes_of(const Container& container) {
    llvm::Error error = llvm::Error::success();
    for (const auto& note : elf_->notes(container, error)) {
      if (note.getName() != "AMDGPU" || note.getType() != NT_AMDGPU_METADATA) continue;
      const auto content = note.getDesc(4);
      Metadata metadata = read_metadata(std::as_bytes(std::span(content.data(), content.size())), file_.name());
      result_.target = normalise_target(metadata.target);
      result_.kernels = std::move(metadata.kernels);
      found_note_ = true;
    }
    if (error) fail(ExitCode::bad_input, "{}: damaged note: {}", file_.name(), message(std::move(error)));
  }

  template <typename Sections>
  void read_notes(const Sections& sections) {
    auto headers = elf_->program_headers();  // checked by read_segments
    for (const auto& header : *headers)
      if (header.p_type == PT_NOTE && !found_note_) read_notes_of(header);
    for (const auto& section : sections)  // a relocatable object has no program headers
      if (section.sh_type == SHT_NOTE && !found_note_) read_notes_of(section);
  }

  template <typename Section>
  void read_symbols(const Section& section) {
    auto symbols = elf_->symbols(&section);
    if (!symbols) fail(ExitCode::bad_input, "{}: damaged symbol table: {}", file_.name(), message(symbols.takeError()));
    auto strings = elf_->getStringTableForSymtab(section);
    if (!strings) fail(ExitCode::bad_input, "{}: damaged symbol names: {}", file_.name(), message(strings.takeError()));
    for (const auto& symbol : *symbols) {
      // Reserved section indices: undefined, absolute, and the LDS symbols of relocatable objects.
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE) continue;
      auto name = symbol.getName(*strings);
      if (!name) fail(ExitCode::bad_input, "{}: damaged symbol name: {}", file_.name(), message(name.takeError()));
      if (name->starts_with(llvm::StringRef(cuid_prefix.data(), cuid_prefix.size()))) {
        const std::string cuid = name->substr(cuid_prefix.size()).str();
        if (std::find(result_.cuids.begin(), result_.cuids.end(), cuid) == result_.cuids.end())
          result_.cuids.push_back(cuid);
      }
      if (symbol.getType() != STT_OBJECT || name->ends_with(".kd")) continue;
      if (seen_.emplace(name->str(), symbol.st_value).second)
        result_.variables.push_back({name->str(), symbol.st_value, symbol.st_size});
    }
  }

  const ByteView& file_;
  std::optional<ElfFile> elf_;
  CodeObject result_;
  std::set<std::pair<std::string, std::uint64_t>> seen_;
  bool found_note_ = false;
};

}  // namespace

CodeObject parse_code_object(std::span<const std::byte> elf, std::string_view name) {
  // LLVM's ELF reader wants eight-byte alignment; callers may hand over the middle of a file.
  if (reinterpret_cast<std::uintptr_t>(elf.data()) % 8 != 0) {
    const std::vector<std::byte> aligned(elf.begin(), elf.end());
    return Parser(ByteView(aligned, name)).parse();
  }
  return Parser(ByteView(elf, name)).parse();
}

}  // namespace kerncap::codeobject
