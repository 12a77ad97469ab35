#include "replay/code_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/support/error.h"
#include "core/support/json.h"

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;

constexpr std::uint16_t machine_amdgpu = 224;       // EM_AMDGPU
constexpr std::uint32_t note_amdgpu_metadata = 32;  // NT_AMDGPU_METADATA
constexpr std::uint64_t largest_note = 64u << 20;

class Bytes {
 public:
  Bytes(std::span<const std::byte> data, std::string_view name) : data_(data), name_(name) {}

  template <typename T>
  T at(std::uint64_t offset) const {
    T value;
    const auto bytes = slice(offset, sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::span<const std::byte> slice(std::uint64_t offset, std::uint64_t size) const {
    if (offset > data_.size() || size > data_.size() - offset) {
      fail(ExitCode::bad_input, "code object '{}' is damaged: it refers to byte {} of {}", name_, offset + size,
           data_.size());
    }
    return data_.subspan(offset, size);
  }

  // A name inside a string table.
  std::string text(std::span<const std::byte> table, std::uint64_t offset) const {
    if (offset >= table.size()) return {};
    const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
    return std::string(begin, ::strnlen(begin, table.size() - offset));
  }

 private:
  std::span<const std::byte> data_;
  std::string_view name_;
};

std::uint32_t number(const support::Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_number_unsigned() ? object.at(key).get<std::uint32_t>() : 0;
}

std::string text(const support::Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>() : std::string();
}

codeobject::Kernel read_kernel(const support::Json& entry) {
  codeobject::Kernel kernel;
  kernel.name = text(entry, ".name");
  kernel.symbol = text(entry, ".symbol");
  kernel.kernarg_size = number(entry, ".kernarg_segment_size");
  kernel.kernarg_alignment = number(entry, ".kernarg_segment_align");
  kernel.group_segment_size = number(entry, ".group_segment_fixed_size");
  kernel.private_segment_size = number(entry, ".private_segment_fixed_size");
  kernel.wavefront_size = number(entry, ".wavefront_size");
  kernel.max_flat_workgroup_size = number(entry, ".max_flat_workgroup_size");
  if (entry.contains(".uses_dynamic_stack") && entry.at(".uses_dynamic_stack").is_boolean()) {
    kernel.uses_dynamic_stack = entry.at(".uses_dynamic_stack").get<bool>();
  }
  if (!entry.contains(".args") || !entry.at(".args").is_array()) return kernel;
  for (const support::Json& argument : entry.at(".args")) {
    if (!argument.is_object()) continue;
    codeobject::KernelArgument a;
    a.name = text(argument, ".name");
    a.type_name = text(argument, ".type_name");
    a.value_kind = text(argument, ".value_kind");
    a.offset = number(argument, ".offset");
    a.size = number(argument, ".size");
    kernel.arguments.push_back(std::move(a));
  }
  return kernel;
}

void read_metadata(std::span<const std::byte> bytes, std::string_view name, CodeImage& image) {
  if (bytes.size() > largest_note)
    fail(ExitCode::bad_input, "code object '{}' has metadata of {} bytes", name, bytes.size());
  try {
    const auto metadata = support::Json::from_msgpack(bytes.begin(), bytes.end());
    if (!metadata.is_object()) return;
    image.target = text(metadata, "amdhsa.target");
    if (const auto dashes = image.target.find("--"); dashes != std::string::npos) {
      image.processor = image.target.substr(dashes + 2, image.target.find(':') - dashes - 2);
    }
    if (!metadata.contains("amdhsa.kernels") || !metadata.at("amdhsa.kernels").is_array()) return;
    for (const support::Json& entry : metadata.at("amdhsa.kernels")) {
      if (entry.is_object()) image.kernels.push_back(read_kernel(entry));
    }
  } catch (const support::Json::exception& error) {
    fail(ExitCode::bad_input, "the metadata of code object '{}' is damaged: {}", name, error.what());
  }
}

void read_notes(const Bytes& file, std::uint64_t offset, std::uint64_t size, std::string_view name, CodeImage& image) {
  const std::uint64_t end = offset + size;
  while (end - offset >= sizeof(Elf64_Nhdr)) {
    const auto header = file.at<Elf64_Nhdr>(offset);
    offset += sizeof header;
    const std::uint64_t name_size = (std::uint64_t{header.n_namesz} + 3) & ~std::uint64_t{3};
    const std::uint64_t data_size = (std::uint64_t{header.n_descsz} + 3) & ~std::uint64_t{3};
    if (name_size > end - offset || header.n_descsz > end - offset - name_size) return;
    const auto owner = file.slice(offset, header.n_namesz);
    const bool amdgpu = owner.size() >= 6 && std::memcmp(owner.data(), "AMDGPU", 6) == 0;
    if (amdgpu && header.n_type == note_amdgpu_metadata) {
      return read_metadata(file.slice(offset + name_size, header.n_descsz), name, image);
    }
    offset += std::min(name_size + data_size, end - offset);
  }
}

template <typename Section>
void read_symbols(const Bytes& file, const Elf64_Shdr& table, const Section& section, unsigned sections,
                  CodeImage& image) {
  const Elf64_Shdr strings = section(table.sh_link);
  const auto names = file.slice(strings.sh_offset, strings.sh_size);
  file.slice(table.sh_offset, table.sh_size);
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = file.at<Elf64_Sym>(table.sh_offset + at);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE) continue;
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    ImageSymbol entry{file.text(names, symbol.st_name),
                      symbol.st_value,
                      symbol.st_size,
                      type == STT_FUNC,
                      type == STT_OBJECT,
                      ELF64_ST_BIND(symbol.st_info) == STB_LOCAL,
                      false};
    entry.is_writable = symbol.st_shndx < sections && (section(symbol.st_shndx).sh_flags & SHF_WRITE) != 0;
    if (!entry.name.empty() && (entry.is_function || entry.is_object)) image.symbols.push_back(std::move(entry));
  }
}

}  // namespace

const ImageSymbol* CodeImage::find(std::string_view name) const {
  const ImageSymbol* result = nullptr;
  for (const ImageSymbol& symbol : symbols) {
    if (symbol.name != name) continue;
    if (result != nullptr) return nullptr;
    result = &symbol;
  }
  return result;
}

const ImageSymbol* CodeImage::covering(std::uint64_t address) const {
  for (const ImageSymbol& symbol : symbols) {
    if (address >= symbol.address && address - symbol.address < std::max<std::uint64_t>(symbol.size, 1)) return &symbol;
  }
  return nullptr;
}

const codeobject::Kernel* CodeImage::kernel(std::string_view symbol) const {
  for (const codeobject::Kernel& kernel : kernels) {
    if (kernel.symbol == symbol || kernel.name == symbol || kernel.name + ".kd" == symbol) return &kernel;
  }
  return nullptr;
}

bool is_data(const ImageSymbol& symbol) {
  return symbol.is_object && symbol.size != 0 && !symbol.name.ends_with(".kd") &&
         !symbol.name.starts_with("__hip_cuid");
}

std::vector<std::byte> initial_bytes(const CodeImage& image, std::span<const std::byte> elf, std::uint64_t address,
                                     std::uint64_t size) {
  for (const CodeImage::Segment& segment : image.segments) {
    if (address < segment.address || address - segment.address > segment.memory_size ||
        size > segment.memory_size - (address - segment.address)) {
      continue;
    }
    std::vector<std::byte> result(size);
    const std::uint64_t offset = address - segment.address;
    if (offset < segment.file_size) {
      const std::uint64_t length = std::min(size, segment.file_size - offset);
      std::memcpy(result.data(), elf.data() + segment.file_offset + offset, length);
    }
    return result;
  }
  return {};
}

CodeImage read_code_image(std::span<const std::byte> elf, std::string_view name) {
  const Bytes file(elf, name);
  const auto header = elf.size() >= sizeof(Elf64_Ehdr) ? file.at<Elf64_Ehdr>(0) : Elf64_Ehdr{};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != machine_amdgpu) {
    fail(ExitCode::bad_input, "'{}' is not an AMD GPU code object (a 64-bit AMDGPU ELF file)", name);
  }
  CodeImage image;
  if (header.e_phentsize == sizeof(Elf64_Phdr)) {
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      const auto segment = file.at<Elf64_Phdr>(header.e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr));
      if (segment.p_type == PT_LOAD) {
        if (segment.p_memsz > UINT64_MAX / 2 || segment.p_vaddr > UINT64_MAX / 2) {
          fail(ExitCode::bad_input, "code object '{}' is damaged: a segment reaches past the address space", name);
        }
        image.memory_size = std::max(image.memory_size, segment.p_vaddr + segment.p_memsz);
        file.slice(segment.p_offset, segment.p_filesz);
        image.segments.push_back({segment.p_vaddr, segment.p_memsz, segment.p_offset, segment.p_filesz});
      } else if (segment.p_type == PT_NOTE && image.kernels.empty()) {
        file.slice(segment.p_offset, segment.p_filesz);
        read_notes(file, segment.p_offset, segment.p_filesz, name, image);
      }
    }
  }
  if (header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shoff != 0) {
    const auto section = [&](std::uint64_t i) { return file.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)); };
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      const auto table = section(i);
      if ((table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM) && table.sh_link < header.e_shnum) {
        read_symbols(file, table, section, header.e_shnum, image);
      }
    }
  }
  // .dynsym repeats global symbols of .symtab.
  const auto key = [](const ImageSymbol& s) { return std::tie(s.address, s.name, s.size); };
  std::sort(image.symbols.begin(), image.symbols.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  image.symbols.erase(std::unique(image.symbols.begin(), image.symbols.end(),
                                  [&](const auto& a, const auto& b) { return key(a) == key(b); }),
                      image.symbols.end());
  return image;
}

}  // namespace kerncap::replay
