#include "replay/kernarg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using codeobject::Kernel;
using codeobject::KernelArgument;

KernelArgument argument(std::string kind, std::uint32_t offset, std::uint32_t size) {
  KernelArgument a;
  a.value_kind = std::move(kind);
  a.offset = offset;
  a.size = size;
  return a;
}

struct Example {
  Kernel kernel;
  std::vector<std::byte> bytes = std::vector<std::byte>(48);
  Example() {
    kernel.kernarg_size = 48;
    kernel.arguments = {argument("global_buffer", 0, 8), argument("by_value", 8, 4),
                        argument("hidden_block_count_x", 16, 4), argument("hidden_hostcall_buffer", 24, 8),
                        argument("hidden_queue_ptr", 32, 8)};
    put(0, 0x1111);
    put(16, 7);
    put(24, 0x2222);
    put(32, 0x3333);
  }
  void put(std::size_t offset, std::uint64_t value) { std::memcpy(bytes.data() + offset, &value, 8); }
};

std::uint64_t word(const std::vector<std::byte>& bytes, std::size_t offset, std::size_t size = 8) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, size);
  return value;
}

TEST(Kernarg, keeps_what_is_the_applications_and_makes_new_what_is_the_processs) {
  Example e;
  const KernargResult result = build_kernarg(e.kernel, e.bytes, e.kernel, {.queue = 0x9999});
  EXPECT_EQ(word(result.bytes, 0), 0x1111u);
  EXPECT_EQ(word(result.bytes, 16, 4), 7u);
  EXPECT_EQ(word(result.bytes, 24), 0u);
  EXPECT_EQ(word(result.bytes, 32), 0x9999u);
  EXPECT_EQ(result.rewrites.size(), 2u);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], testing::HasSubstr("hostcall"));
}

TEST(Kernarg, a_candidate_with_other_hidden_arguments_gets_the_same_values) {
  Example e;
  Kernel candidate;
  candidate.kernarg_size = 64;
  candidate.arguments = {argument("global_buffer", 0, 8), argument("by_value", 8, 4),
                         argument("hidden_group_size_x", 12, 2), argument("hidden_block_count_x", 40, 4),
                         argument("hidden_remainder_x", 44, 2)};
  const KernargResult result =
      build_kernarg(e.kernel, e.bytes, candidate, {.grid = {100, 1, 1}, .workgroup = {64, 1, 1}});
  ASSERT_EQ(result.bytes.size(), 64u);
  EXPECT_EQ(word(result.bytes, 0), 0x1111u);
  EXPECT_EQ(word(result.bytes, 40, 4), 7u);
  EXPECT_EQ(word(result.bytes, 12, 2), 64u);
  EXPECT_EQ(word(result.bytes, 44, 2), 36u);
}

TEST(Kernarg, other_parameters_are_refused) {
  Example e;
  Kernel candidate = e.kernel;
  candidate.arguments[1].size = 8;
  EXPECT_THROW(build_kernarg(e.kernel, e.bytes, candidate, {}), support::Error);
  candidate.arguments.erase(candidate.arguments.begin());
  EXPECT_THROW(build_kernarg(e.kernel, e.bytes, candidate, {}), support::Error);
}

TEST(Kernarg, a_kernel_without_metadata_gets_the_captured_bytes) {
  Example e;
  const Kernel assembly;
  EXPECT_EQ(build_kernarg(assembly, e.bytes, assembly, {}).bytes, e.bytes);
}

TEST(Kernarg, hostile_offsets_do_not_reach_outside) {
  Example e;
  Kernel captured = e.kernel, candidate = e.kernel;
  captured.arguments[0].offset = candidate.arguments[0].offset = 0xfffffff0;
  candidate.arguments[4].offset = 0xfffffff0;
  EXPECT_THROW(build_kernarg(captured, e.bytes, candidate, {}), support::Error);
}

}  // namespace
}  // namespace kerncap::replay
