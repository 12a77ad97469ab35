#include "capture/code_pointers.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kerncap::capture {
namespace {

const std::vector<CodeSymbol> symbols = {{"first", 0x100, 0x40}, {"second", 0x200, 0x100}};

std::vector<snapshot::CodePointer> found(std::vector<std::uint64_t> words, std::uint64_t address) {
  CodePointerFinder finder({{0x70000, 0x1000, 0x70000, "b"}, {0x10000, 0x1000, 0xf000, "a"}});
  finder.scan(address, std::as_bytes(std::span(words)));
  return finder.take([](const std::string&) -> const std::vector<CodeSymbol>& { return symbols; });
}

TEST(CodePointers, WordsInsideLoadedCodeAreFoundAndNamed) {
  const auto hits = found({0xffff, 0x10000, 0x10fff, 0x11000, 0x40000, 0x70104, 0x71000, 0}, 0x5000);
  ASSERT_EQ(hits.size(), 3u);
  EXPECT_EQ(hits[0].address, 0x5008u);
  EXPECT_EQ(hits[0].code_object, "a");
  EXPECT_EQ(hits[0].offset, 0u);
  EXPECT_EQ(hits[1].offset, 0xfffu);
  EXPECT_EQ(hits[2].address, 0x5028u);
  EXPECT_EQ(hits[2].symbol, "first");
  EXPECT_EQ(hits[0].symbol, "");  // 0x10000 - 0xf000 = 0x1000: no symbol there
}

TEST(CodePointers, OnlyAlignedWordsAreLookedAt) {
  const std::uint64_t word = 0x10010;
  std::vector<std::byte> bytes(24);
  std::memcpy(bytes.data() + 4, &word, 8);
  CodePointerFinder at_4({{0x10000, 0x1000, 0, "a"}});
  at_4.scan(0x1004, bytes);  // the word's own address is 0x1008
  EXPECT_EQ(at_4.take([](const std::string&) -> const std::vector<CodeSymbol>& { return symbols; }).size(), 1u);
  CodePointerFinder at_0({{0x10000, 0x1000, 0, "a"}});
  at_0.scan(0x1000, bytes);
  EXPECT_TRUE(at_0.take([](const std::string&) -> const std::vector<CodeSymbol>& { return symbols; }).empty());
}

TEST(CodePointers, TheListEndsAtItsLimitAndSaysSo) {
  CodePointerFinder finder({{0x10000, 0x1000, 0, "a"}});
  const std::vector<std::uint64_t> words(CodePointerFinder::limit + 1, 0x10000);
  finder.scan(0, std::as_bytes(std::span(words)));
  EXPECT_FALSE(finder.complete());
}

}  // namespace
}  // namespace kerncap::capture
