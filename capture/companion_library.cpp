// The other side of companion.h: compiled into libkerncap-capture-codeobject.so.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "capture/companion.h"
#include "core/codeobject/code_object.h"
#include "core/support/error.h"

namespace kerncap::capture {
namespace {

bool matches(const std::string& pattern, std::string_view symbol, std::string_view demangled) {
  static std::mutex mutex;
  static const codeobject::NamePattern* last = nullptr;  // a process asks for one pattern only; never destroyed
  const std::lock_guard lock(mutex);
  if (last == nullptr || last->text() != pattern) last = new codeobject::NamePattern(pattern);
  return last->matches(symbol, demangled);
}

template <typename T>
bool read_at(std::span<const std::byte> bytes, std::uint64_t offset, T& out) {
  if (offset > bytes.size() || sizeof out > bytes.size() - offset) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return true;
}

std::string text_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const char* begin = reinterpret_cast<const char*>(bytes.data()) + offset;
  return std::string(begin, ::strnlen(begin, bytes.size() - offset));
}

// Functions have no place in codeobject::CodeObject; a pointer into code is worth its function's name all the same.
// Damage ends the list early: parse_code_object() has looked at the file before.
std::vector<CodeSymbol> symbols_of(std::span<const std::byte> elf) {
  std::vector<CodeSymbol> out;
  Elf64_Ehdr header;
  if (!read_at(elf, 0, header)) return out;
  for (unsigned s = 0; s < header.e_shnum; ++s) {
    Elf64_Shdr section, strings;
    if (!read_at(elf, header.e_shoff + s * sizeof section, section)) return out;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (!read_at(elf, header.e_shoff + std::uint64_t{section.sh_link} * sizeof strings, strings)) return out;
    for (std::uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      if (!read_at(elf, section.sh_offset + i * sizeof symbol, symbol)) return out;
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT)) continue;
      out.push_back({text_at(elf, strings.sh_offset + symbol.st_name), symbol.st_value, symbol.st_size});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return std::tie(a.address, a.name) < std::tie(b.address, b.name); });
  out.erase(std::unique(out.begin(), out.end(),
                        [](const auto& a, const auto& b) { return a.address == b.address && a.name == b.name; }),
            out.end());
  return out;
}

CodeDescription describe(std::span<const std::byte> elf, std::string_view name) {
  CodeDescription out;
  out.kernels = codeobject::parse_code_object(elf, name).kernels;
  out.symbols = symbols_of(elf);
  return out;
}

constexpr Companion table = {&codeobject::demangle, &matches, &describe};

}  // namespace
}  // namespace kerncap::capture

extern "C" __attribute__((visibility("default"))) const kerncap::capture::Companion* kerncap_capture_companion_1() {
  return &kerncap::capture::table;
}
