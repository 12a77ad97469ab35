// Writes the fuzzer's first inputs into a folder.
#include <fstream>

#include "tests/fuzz/compdb_fuzz_target.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  unsigned number = 0;
  for (const std::string& seed : kerncap::compdb::fuzz_seeds()) {
    std::ofstream(std::string(argv[1]) + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  }
  return 0;
}
