// The fuzzer's readers on its seeds and on a fixed set of damaged ones: what runs everywhere, without a fuzzer.
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/compdb_fuzz_target.h"

namespace kerncap::compdb {
namespace {

TEST(FuzzReplay, seeds_and_their_damaged_copies_are_read_safely) {
  std::mt19937 random(2);
  for (const std::string& seed : fuzz_seeds()) {
    fuzz_compdb(seed);
    for (std::size_t size = 0; size < seed.size(); ++size) fuzz_compdb(std::string_view(seed).substr(0, size));
    for (int round = 0; round < 3000; ++round) {
      std::string damaged = seed;
      for (unsigned i = 0; i <= random() % 4; ++i)
        damaged[1 + random() % (damaged.size() - 1)] = static_cast<char>(random());
      fuzz_compdb(damaged);
    }
  }
}

}  // namespace
}  // namespace kerncap::compdb
