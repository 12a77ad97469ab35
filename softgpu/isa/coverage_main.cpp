// Prints the coverage of each target's instructions as Markdown: docs/softgpu-isa.md is made from it.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "softgpu/isa/coverage.h"

namespace {

// The mnemonics that a text mentions: words of lower-case letters, digits and underscores that contain an underscore.
std::set<std::string> words_of(const char* path) {
  std::set<std::string> words;
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::string word;
  for (const char c : text + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
    } else {
      for (const char* suffix : {"_e32", "_e64", "_sdwa", "_dpp"})
        if (word.ends_with(suffix)) words.insert(word.substr(0, word.size() - std::string(suffix).size()));
      if (!word.empty()) words.insert(word);
      word.clear();
    }
  }
  return words;
}

}  // namespace

// Arguments: test sources, whose mnemonics count as tested.
int main(int argc, char** argv) {
  using namespace kerncap::softgpu::isa;
  std::set<std::string> tested;
  for (int k = 1; k < argc; ++k) tested.merge(words_of(argv[k]));
  struct Row {
    const char* processor;
    bool wave32;
  };
  std::string missing;
  std::printf(
      "| target | instructions of compute programs | with semantics | with a test of their own |\n|---|---|---|---|\n");
  for (const Row& row : {Row{"gfx90a", false}, Row{"gfx942", false}, Row{"gfx1030", true}, Row{"gfx1100", true}}) {
    unsigned total = 0, implemented = 0, with_test = 0;
    std::string absent;
    for (const auto& [mnemonic, entry] : instruction_coverage(row.processor, row.wave32)) {
      if (is_graphics_instruction(mnemonic)) continue;
      ++total;
      if (entry.problem.empty()) {
        ++implemented;
        with_test += tested.contains(mnemonic);
      } else {
        absent += "- `" + entry.example + "`: " + entry.problem + "\n";
      }
    }
    std::printf("| %s | %u | %u | %u |\n", row.processor, total, implemented, with_test);
    missing += "\n### " + std::string(row.processor) + "\n\n" + (absent.empty() ? "Nothing.\n" : absent);
  }
  std::printf("\n## Without semantics\n%s", missing.c_str());
}
