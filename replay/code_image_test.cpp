#include "replay/code_image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/support/error.h"
#include "core/support/json.h"

namespace kerncap::replay {
namespace {

template <typename T>
void put(std::vector<std::byte>& file, std::size_t at, const T& value) {
  if (file.size() < at + sizeof value) file.resize(at + sizeof value);
  std::memcpy(file.data() + at, &value, sizeof value);
}

void put_bytes(std::vector<std::byte>& file, std::size_t at, std::string_view text) {
  if (file.size() < at + text.size()) file.resize(at + text.size());
  std::memcpy(file.data() + at, text.data(), text.size());
}

// A code object with one kernel, one variable and one constant; no code.
std::vector<std::byte> small_code_object() {
  const support::Json metadata = {
      {"amdhsa.target", "amdgcn-amd-amdhsa--gfx90a:xnack-"},
      {"amdhsa.kernels",
       {{{".name", "step"},
         {".symbol", "step.kd"},
         {".kernarg_segment_size", 24},
         {".group_segment_fixed_size", 512},
         {".max_flat_workgroup_size", 256},
         {".args", {{{".name", "out"}, {".offset", 0}, {".size", 8}, {".value_kind", "global_buffer"}}}}}}}};
  const std::vector<std::uint8_t> note = support::Json::to_msgpack(metadata);
  constexpr std::string_view names{"\0step.kd\0weights\0", 17};

  std::vector<std::byte> file;
  constexpr std::size_t headers = sizeof(Elf64_Ehdr), note_at = 0x200, symbols_at = 0x800, names_at = 0x900,
                        sections_at = 0xa00;
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_machine = 224;
  elf.e_phoff = headers;
  elf.e_phentsize = sizeof(Elf64_Phdr);
  elf.e_phnum = 2;
  elf.e_shoff = sections_at;
  elf.e_shentsize = sizeof(Elf64_Shdr);
  elf.e_shnum = 4;
  put(file, 0, elf);
  Elf64_Phdr load{}, notes{};
  load.p_type = PT_LOAD;
  load.p_vaddr = 0x3000;
  load.p_memsz = 0x1000;
  notes.p_type = PT_NOTE;
  notes.p_offset = note_at;
  notes.p_filesz = sizeof(Elf64_Nhdr) + 8 + note.size();
  put(file, headers, load);
  put(file, headers + sizeof load, notes);
  put(file, note_at, Elf64_Nhdr{7, static_cast<Elf64_Word>(note.size()), 32});
  put_bytes(file, note_at + sizeof(Elf64_Nhdr), "AMDGPU");
  for (std::size_t i = 0; i < note.size(); ++i) put(file, note_at + sizeof(Elf64_Nhdr) + 8 + i, note[i]);
  Elf64_Sym descriptor{1, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, 0x100, 64};
  Elf64_Sym weights{9, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 2, 0x3010, 16};
  put(file, symbols_at, Elf64_Sym{});
  put(file, symbols_at + sizeof(Elf64_Sym), descriptor);
  put(file, symbols_at + 2 * sizeof(Elf64_Sym), weights);
  put_bytes(file, names_at, names);
  Elf64_Shdr read_only{}, writable{}, table{};
  read_only.sh_flags = SHF_ALLOC;
  writable.sh_flags = SHF_ALLOC | SHF_WRITE;
  table.sh_type = SHT_DYNSYM;
  table.sh_offset = symbols_at;
  table.sh_size = 3 * sizeof(Elf64_Sym);
  table.sh_link = 0;
  Elf64_Shdr strings{};
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = names_at;
  strings.sh_size = names.size();
  put(file, sections_at, strings);
  put(file, sections_at + sizeof strings, read_only);
  put(file, sections_at + 2 * sizeof strings, writable);
  put(file, sections_at + 3 * sizeof strings, table);
  return file;
}

TEST(CodeImage, reads_kernels_and_symbols) {
  const CodeImage image = read_code_image(small_code_object(), "test");
  EXPECT_EQ(image.processor, "gfx90a");
  EXPECT_EQ(image.memory_size, 0x4000u);
  const codeobject::Kernel* kernel = image.kernel("step.kd");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(image.kernel("step"), kernel);
  EXPECT_EQ(kernel->group_segment_size, 512u);
  EXPECT_EQ(kernel->max_flat_workgroup_size, 256u);
  ASSERT_EQ(kernel->arguments.size(), 1u);
  EXPECT_EQ(kernel->arguments[0].value_kind, "global_buffer");
  const ImageSymbol* weights = image.find("weights");
  ASSERT_NE(weights, nullptr);
  EXPECT_TRUE(is_data(*weights) && weights->is_writable);
  EXPECT_FALSE(is_data(*image.find("step.kd")));
  EXPECT_EQ(initial_bytes(image, small_code_object(), 0x3010, 16), std::vector<std::byte>(16));  // no bytes in the file
  EXPECT_TRUE(initial_bytes(image, small_code_object(), 0x3ff8, 16).empty());
  EXPECT_EQ(image.covering(0x301f), weights);
  EXPECT_EQ(image.covering(0x3020), nullptr);
  EXPECT_EQ(image.find("nothing"), nullptr);
}

TEST(CodeImage, refuses_what_is_no_code_object) {
  EXPECT_THROW(read_code_image({}, "empty"), support::Error);
  auto host = small_code_object();
  host[18] = std::byte{62};  // EM_X86_64
  EXPECT_THROW(read_code_image(host, "host"), support::Error);
}

// Every single damaged byte and every length: an Error or an image, never a crash (run under the sanitizers as well).
TEST(CodeImage, damage_never_reaches_outside_the_file) {
  const auto whole = small_code_object();
  const auto try_to_read = [](const std::vector<std::byte>& file) {
    try {
      (void)read_code_image(file, "damaged");
    } catch (const support::Error&) {
    }
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] ^= std::byte{0xff};
    try_to_read(damaged);
    damaged[i] = std::byte{0x7f};
    try_to_read(damaged);
  }
  for (std::size_t size = 0; size < whole.size(); size += 7)
    try_to_read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
}

}  // namespace
}  // namespace kerncap::replay
