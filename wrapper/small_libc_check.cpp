// Tried at configure time: does a static program of libstdc++'s templates, zstd and musl link here, and does it run?
#include <cstdlib>
#include <unistd.h>
#include <zstd.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace std {
void __throw_length_error(const char*) { _exit(2); }
void __throw_logic_error(const char*) { _exit(2); }
void __throw_bad_alloc() { _exit(2); }
void __throw_bad_array_new_length() { _exit(2); }
}  // namespace std
void* operator new(std::size_t size) { return malloc(size); }
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }

int main(int argc, char** argv) {
  std::unordered_map<std::string, int> counts;
  std::map<std::string, std::string> sorted;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i % 7) + argv[argc - 1];
  ++counts[text];
  // glibc's headers from 2.38 on turn these into functions (__isoc23_strtoul) that musl does not have.
  counts["number"] = static_cast<int>(std::strtoul(argv[argc - 1], nullptr, 10) + std::strtol(argv[0], nullptr, 10));
  sorted[text] = "x";
  std::vector<char> packed(ZSTD_compressBound(text.size())), back(text.size());
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3);
  const std::size_t whole = ZSTD_decompress(back.data(), back.size(), packed.data(), size);
  return counts[text] == 1 && whole == text.size() && text == std::string(back.data(), whole) ? 0 : 1;
}
