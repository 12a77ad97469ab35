// Every instruction with semantics has a test that executes it, on every target that has it. The instructions come from
// the tables (coverage.h), the tests are those of this program; so it can be told only after all of them have run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "softgpu/isa/coverage.h"
#include "softgpu/isa/instruction_bench.h"

namespace kerncap::softgpu::isa {
namespace {

class EveryInstructionIsProven : public testing::Environment {
 public:
  // CTest runs the program once as a whole for this, with the variable set.
  void TearDown() override {
    if (std::getenv("KERNCAP_ISA_PROOF") == nullptr) return;
    for (const CoverageTarget& target : coverage_targets()) {
      const auto found = InstructionBench::executed().find(target.processor);
      ASSERT_NE(found, InstructionBench::executed().end());
      std::string missing;
      unsigned count = 0;
      for (const auto& [mnemonic, entry] : instruction_coverage(target)) {
        if (!entry.problem.empty() || found->second.contains(mnemonic)) continue;
        missing += " " + mnemonic;
        ++count;
      }
      EXPECT_EQ(count, 0u) << target.processor << " executes instructions that no test does:" << missing;
    }
    if (const char* to = std::getenv("KERNCAP_ISA_TESTED")) {
      std::ofstream file(to);
      for (const auto& [processor, mnemonics] : InstructionBench::executed())
        for (const auto& mnemonic : mnemonics) file << processor << ' ' << mnemonic << '\n';
    }
  }
};

const auto* const environment = testing::AddGlobalTestEnvironment(new EveryInstructionIsProven);

}  // namespace
}  // namespace kerncap::softgpu::isa
