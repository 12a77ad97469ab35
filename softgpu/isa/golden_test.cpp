// The decoding of one encoding of each instruction is that of the golden list, whichever LLVM disassembles it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "softgpu/isa/coverage.h"

namespace kerncap::softgpu::isa {
namespace {

TEST(GoldenEncodings, mean_what_they_have_always_meant) {
  std::ifstream file(KERNCAP_ISA_GOLDEN);
  ASSERT_TRUE(file) << KERNCAP_ISA_GOLDEN;
  unsigned lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::istringstream parts(line);
    std::string processors, code, wanted;
    parts >> processors >> code;
    std::getline(parts >> std::ws, wanted);
    std::vector<unsigned char> bytes;
    for (std::size_t at = 0; at + 2 <= code.size(); at += 2)
      bytes.push_back(static_cast<unsigned char>(std::stoul(code.substr(at, 2), nullptr, 16)));
    for (const CoverageTarget& target : coverage_targets())
      if ((processors + ",").find(std::string(target.processor) + ",") != std::string::npos) {
        EXPECT_EQ(canonical_form(target, bytes), wanted) << target.processor << " " << code;
      }
  }
  EXPECT_GT(lines, 2000u);
}

}  // namespace
}  // namespace kerncap::softgpu::isa
