#include "core/codeobject/same_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/codeobject/byte_view.h"
#include "core/codeobject/elf_file.h"

namespace kerncap::codeobject {
namespace {

using support::ExitCode;
using support::fail;
using namespace llvm::ELF;

struct Definition;

struct Relocation {
  std::uint64_t offset = 0;  // from the start of the definition
  std::uint32_t type = 0;
  std::string target;  // symbol; empty for a constant without a name
  std::int64_t addend = 0;
  const Definition* constant = nullptr;
  bool operator==(const Relocation& other) const {
    return offset == other.offset && type == other.type && target == other.target && addend == other.addend;
  }
};

struct Definition {
  bool without_content = false;  // .bss
  std::uint64_t size = 0;
  std::string_view bytes;
  std::vector<Relocation> relocations;
};

// Where a relocation against a section points to. The code takes addresses by s_getpc_b64, s_add_u32 and s_addc_u32,
// whose literals lie 4 and 12 bytes behind the program counter ("AMDGPU Relocation Records", R_AMDGPU_REL32_LO and
// _HI).
std::int64_t distance_from_counter(std::uint32_t type) {
  return type == R_AMDGPU_REL32_LO ? 4 : type == R_AMDGPU_REL32_HI ? 12 : 0;
}

class RelocatableObject {
 public:
  explicit RelocatableObject(const ByteView& file) : file_(file) {
    if (!file.starts_with("\177ELF") || !is_amdgpu_elf(file))
      fail(ExitCode::bad_input, "{}: not an AMD GPU object", file.name());
    auto elf = open_elf(file);
    if (!elf || elf->getHeader().e_type != ET_REL)
      fail(ExitCode::bad_input, "{}: not a relocatable object", file.name());
    elf_.emplace(*elf);
    auto sections = elf_->sections();
    if (!sections) damaged("section table", sections.takeError());
    sections_ = *sections;
    read_symbols();
    read_relocations();
  }

  const Definition* find(const std::string& name) const {
    const auto found = definitions_.find(name);
    return found == definitions_.end() ? nullptr : &found->second;
  }

 private:
  [[noreturn]] void damaged(std::string_view what, llvm::Error error) const {
    fail(ExitCode::bad_input, "{}: damaged {}: {}", file_.name(), what, llvm::toString(std::move(error)));
  }

  void read_symbols() {
    for (const auto& table : sections_) {
      if (table.sh_type != SHT_SYMTAB) continue;
      auto symbols = elf_->symbols(&table);
      if (!symbols) damaged("symbol table", symbols.takeError());
      auto strings = elf_->getStringTableForSymtab(table);
      if (!strings) damaged("symbol names", strings.takeError());
      for (const auto& symbol : *symbols) {
        auto name = symbol.getName(*strings);
        if (!name) damaged("symbol name", name.takeError());
        const std::size_t index = symbol.st_shndx;
        const bool of_section = symbol.getType() == STT_SECTION || name->empty();
        symbols_.push_back({of_section ? "" : name->str(), index});
        if (of_section || index == SHN_UNDEF || index >= sections_.size()) continue;
        places_[index].push_back({symbol.st_value, symbol.st_size, name->str()});
        definitions_.emplace(name->str(), define(index, symbol.st_value, symbol.st_size));
      }
    }
  }

  Definition define(std::size_t section_index, std::uint64_t start, std::uint64_t size) const {
    const auto& section = sections_[section_index];
    Definition definition;
    definition.size = size;
    definition.without_content = section.sh_type == SHT_NOBITS;
    if (definition.without_content) return definition;
    if (start > section.sh_size || size > section.sh_size - start ||
        !file_.contains(section.sh_offset, section.sh_size))
      fail(ExitCode::bad_input, "{}: a definition lies outside its section", file_.name());
    definition.bytes = file_.text().substr(section.sh_offset + start, size);
    return definition;
  }

  struct Place {
    std::uint64_t start = 0, size = 0;
    std::string name;
    bool contains(std::uint64_t offset) const { return offset >= start && offset - start < size; }
  };

  const Place* place_at(std::size_t section, std::uint64_t offset) const {
    if (const auto found = places_.find(section); found != places_.end())
      for (const auto& place : found->second)
        if (place.contains(offset)) return &place;
    return nullptr;
  }

  // Constants without names end where the next one, or something with a name, begins.
  const Definition* constant_at(std::size_t section, std::uint64_t offset) {
    auto& constants = constants_[section];
    if (constants.empty())
      for (const std::uint64_t start : unnamed_[section]) {
        const auto next = unnamed_[section].upper_bound(start);
        std::uint64_t end = next == unnamed_[section].end() ? std::uint64_t(sections_[section].sh_size) : *next;
        for (const auto& place : places_[section])
          if (place.start > start) end = std::min(end, place.start);
        constants.emplace(start, define(section, start, end > start ? end - start : 0));
      }
    return &constants.at(offset);
  }

  template <typename Visit>
  void each_relocation(Visit visit) {
    for (const auto& table : sections_) {
      if (table.sh_type != SHT_RELA || table.sh_info >= sections_.size()) continue;
      auto relocations = elf_->relas(table);
      if (!relocations) damaged("relocations", relocations.takeError());
      for (const auto& entry : *relocations) {
        if (entry.getSymbol(false) >= symbols_.size())
          fail(ExitCode::bad_input, "{}: a relocation names no symbol", file_.name());
        visit(std::size_t(table.sh_info), entry, symbols_[entry.getSymbol(false)]);
      }
    }
  }

  void read_relocations() {
    const auto is_unnamed = [&](const auto& entry, const Symbol& symbol) {
      return symbol.name.empty() && symbol.section != SHN_UNDEF && symbol.section < sections_.size() &&
             place_at(symbol.section, std::uint64_t(entry.r_addend - distance_from_counter(entry.getType(false)))) ==
                 nullptr;
    };
    each_relocation([&](std::size_t, const auto& entry, const Symbol& symbol) {
      if (is_unnamed(entry, symbol))
        unnamed_[symbol.section].insert(std::uint64_t(entry.r_addend - distance_from_counter(entry.getType(false))));
    });
    each_relocation([&](std::size_t section, const auto& entry, const Symbol& symbol) {
      const Place* user = place_at(section, entry.r_offset);
      if (user == nullptr) return;
      Relocation relocation{entry.r_offset - user->start, entry.getType(false), symbol.name, entry.r_addend, nullptr};
      const std::int64_t distance = distance_from_counter(relocation.type);
      if (is_unnamed(entry, symbol)) {
        relocation.constant = constant_at(symbol.section, std::uint64_t(entry.r_addend - distance));
        relocation.addend = distance;
      } else if (symbol.name.empty() && symbol.section < sections_.size()) {
        if (const Place* target = place_at(symbol.section, std::uint64_t(entry.r_addend - distance))) {
          relocation.target = target->name;
          relocation.addend -= std::int64_t(target->start);
        }
      }
      definitions_.at(user->name).relocations.push_back(std::move(relocation));
    });
  }

  struct Symbol {
    std::string name;  // empty for a section's own
    std::size_t section = 0;
  };

  const ByteView& file_;
  std::optional<ElfFile> elf_;
  ElfFile::Elf_Shdr_Range sections_;
  std::vector<Symbol> symbols_;
  std::map<std::size_t, std::vector<Place>> places_;        // by section
  std::map<std::size_t, std::set<std::uint64_t>> unnamed_;  // where constants without names begin
  std::map<std::size_t, std::map<std::uint64_t, Definition>> constants_;
  std::map<std::string, Definition> definitions_;
};

std::string difference_between(const Definition& first, const Definition& second, const std::string& name) {
  if (first.size != second.size)
    return fmt::format("'{}' has {} bytes in one and {} in the other", name, first.size, second.size);
  if (first.without_content != second.without_content || first.bytes != second.bytes)
    return fmt::format("the bytes of '{}' differ", name);
  if (first.relocations != second.relocations) return fmt::format("what '{}' refers to differs", name);
  for (std::size_t i = 0; i < first.relocations.size(); ++i) {
    const Definition *one = first.relocations[i].constant, *other = second.relocations[i].constant;
    if ((one == nullptr) != (other == nullptr)) return fmt::format("what '{}' refers to differs", name);
    if (one != nullptr && (one->size != other->size || one->bytes != other->bytes))
      return fmt::format("a constant of '{}' differs", name);
  }
  return "";
}

std::string compare(const RelocatableObject& one, const RelocatableObject& other, std::string_view kernel) {
  const std::string name(kernel);
  std::vector<std::string> open{name + ".kd", name};
  std::set<std::string> seen(open.begin(), open.end());
  while (!open.empty()) {
    const std::string symbol = open.back();
    open.pop_back();
    const Definition* first = one.find(symbol);
    const Definition* second = other.find(symbol);
    if (first == nullptr && second == nullptr) {
      if (symbol == name || symbol == name + ".kd") return fmt::format("there is no '{}'", symbol);
      continue;  // both take it from elsewhere
    }
    if (first == nullptr || second == nullptr) return fmt::format("'{}' is missing in one of them", symbol);
    if (const std::string difference = difference_between(*first, *second, symbol); !difference.empty())
      return difference;
    for (const auto& relocation : first->relocations)
      if (!relocation.target.empty() && seen.insert(relocation.target).second) open.push_back(relocation.target);
  }
  return "";
}

}  // namespace

std::string kernel_difference(std::span<const std::byte> one, std::span<const std::byte> other,
                              std::string_view kernel) {
  // LLVM's ELF reader wants eight-byte alignment.
  const std::vector<std::byte> first(one.begin(), one.end()), second(other.begin(), other.end());
  const ByteView first_view(first, "the first object"), second_view(second, "the second object");
  return compare(RelocatableObject(first_view), RelocatableObject(second_view), kernel);
}

}  // namespace kerncap::codeobject
