// libFuzzer target: everything that reads a compilation database, a driver's log or a build tool's files.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/compdb_fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kerncap::compdb::fuzz_compdb({reinterpret_cast<const char*>(data), size});
  return 0;
}
