// Every kind of memory that HIP hands out, captured from a real application on the real runtime.
#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

TEST_F(CapturedMemory, OfTheDevice) {
  CAPTURE_OR_RETURN("device", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_EQ(region(run_.value("address")).kind, RegionKind::device_coarse);
  EXPECT_EQ(region(run_.value("address")).agent, 0);
  EXPECT_TRUE(dispatch().device_time.has_value());
  EXPECT_EQ(dispatch().workgroup[0], 256u);
  EXPECT_EQ(dispatch().grid[0], 40192u);
  const auto kernarg = reader_->kernarg(0);
  std::uint64_t first = 0;
  ASSERT_GE(kernarg.size(), 12u);
  std::memcpy(&first, kernarg.data(), 8);
  EXPECT_EQ(first, run_.value("address"));
}

TEST_F(CapturedMemory, FineGrainedOfTheDevice) {
  CAPTURE_OR_RETURN("device_fine", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  // A device without such a pool gives coarse-grained memory instead.
  const Region& r = region(run_.value("address"));
  EXPECT_EQ(r.kind == RegionKind::device_fine, (r.pool_flags & 2) != 0);
}

TEST_F(CapturedMemory, OfTheHost) {
  CAPTURE_OR_RETURN("host", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  const RegionKind kind = region(run_.value("address")).kind;
  EXPECT_TRUE(kind == RegionKind::host_fine || kind == RegionKind::host_kernarg) << snapshot::to_string(kind);
}

TEST_F(CapturedMemory, CoarseGrainedOfTheHost) {
  CAPTURE_OR_RETURN("host_coarse", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_EQ(region(run_.value("address")).kind, RegionKind::host_coarse);
}

TEST_F(CapturedMemory, Managed) {
  CAPTURE_OR_RETURN("managed", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(CapturedMemory, PagesOfTheApplication) {
  CAPTURE_OR_RETURN("registered", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  const Region& r = region(run_.value("address"));
  EXPECT_EQ(r.kind, RegionKind::registered);
  if (run_.value("host_address") != run_.value("address")) {
    EXPECT_EQ(r.host_address, run_.value("host_address"));
  }
}

TEST_F(CapturedMemory, OfAnAsynchronousPool) {
  CAPTURE_OR_RETURN("async", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(CapturedMemory, MappedIntoAReservation) {
  const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "vmem"}, false);
  if (plain.process.exit_status != 0)
    GTEST_SKIP() << "no virtual memory management here: " << plain.process.standard_error;
  CAPTURE_OR_RETURN("vmem", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_EQ(region(run_.value("address")).kind, RegionKind::vmem);
  EXPECT_EQ(region(run_.value("address")).agent, 0);
  EXPECT_FALSE(region_of(run_.value("hole")));
}

TEST_F(CapturedMemory, FreedRangesAreGone) {
  CAPTURE_OR_RETURN("reused", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  // Of the 16 MiB that were freed at most what was allocated again is still there.
  std::uint64_t in_freed = 0;
  for (const Region& r : dispatch().regions) {
    const std::uint64_t begin = std::max(r.address, run_.value("freed"));
    const std::uint64_t end = std::min(r.address + r.size, run_.value("freed") + (16 << 20));
    if (begin < end) in_freed += end - begin;
  }
  EXPECT_LT(in_freed, 4u << 20);
}

TEST_F(CapturedMemory, PartsOfALargeBlock) {
  CAPTURE_OR_RETURN("suballocated", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_GE(region(run_.value("address")).size, 20u << 20);
}

TEST_F(CapturedMemory, OfACachingAllocatorBehindATableOfPointers) {
  CAPTURE_OR_RETURN("caching", "transform_table");
  ASSERT_EQ(run_.said["address"].size(), 40u);
  for (const std::uint64_t row : run_.said["address"]) expect_in_place(row, run_.value("words"));
}

TEST_F(CapturedMemory, AtAnAddressThatWasUsedBefore) {
  CAPTURE_OR_RETURN("remapped", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_EQ(region(run_.value("address")).kind, RegionKind::registered);
}

TEST_F(CapturedMemory, OfAnotherProcess) {
  runner_.config.pattern = "transform";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "ipc"});
  if (run_.process.exit_status == 77) GTEST_SKIP() << "no memory can be shared between processes here";
  ASSERT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_EQ(run_.statuses.size(), 2u);  // the owner has launched nothing
  ASSERT_TRUE(std::filesystem::exists(runner_.config.output)) << run_.process.standard_error;
  reader_.emplace(runner_.config.output);
  EXPECT_THAT(reader_->verify({}), ::testing::IsEmpty());
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_EQ(region(run_.value("address")).kind, RegionKind::ipc);
}

TEST_F(CapturedMemory, OfTheHeapThatKernelsAllocateFrom) {
  CAPTURE_OR_RETURN("device_malloc", "transform_allocated");
  expect_in_place(run_.value("address"), run_.value("words"));
}

// What the runtime passes behind the application's arguments is told apart by the metadata, and where it points to
// memory, that is captured, too.
TEST_F(CapturedMemory, HiddenArgumentsAreNamedAndPointToWhatWasCaptured) {
  CAPTURE_OR_RETURN("printing", "transform_and_print");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_THAT(run_.process.standard_output, ::testing::HasSubstr("thread 7"));
  const auto kernarg = reader_->kernarg(0);
  unsigned hidden = 0, pointers = 0;
  for (const codeobject::KernelArgument& argument : dispatch().kernel.arguments) {
    if (!argument.hidden()) continue;
    ++hidden;
    if (argument.value_kind != "hidden_hostcall_buffer" && argument.value_kind != "hidden_printf_buffer") continue;
    std::uint64_t pointer = 0;
    ASSERT_LE(argument.offset + 8, kernarg.size());
    std::memcpy(&pointer, kernarg.data() + argument.offset, 8);
    EXPECT_TRUE(region_of(pointer)) << argument.value_kind << std::hex << pointer;
    ++pointers;
  }
  EXPECT_GE(hidden, 4u);  // the three global offsets, and the buffer
  EXPECT_EQ(pointers, 1u);
}

TEST_F(CapturedMemory, GlobalVariables) {
  CAPTURE_OR_RETURN("global", "transform_global");
  expect_in_place(run_.value("address"), run_.value("words"));
  const Region& r = region(run_.value("address"));
  EXPECT_EQ(r.kind, RegionKind::code_object);
  EXPECT_EQ(r.code_object, dispatch().code_object);
}

TEST_F(CapturedMemory, ConstantVariables) {
  CAPTURE_OR_RETURN("constant", "transform_constant");
  const auto table = words(run_.value("constant_address"), 1024, State::before);
  for (std::uint32_t i = 0; i < 1024; ++i) ASSERT_EQ(table[i], pattern(i));
  const auto after = words(run_.value("address"), 1024, State::after);
  for (std::uint32_t i = 0; i < 1024; ++i) ASSERT_EQ(after[i], changed(pattern(i)));
}

TEST_F(CapturedMemory, ReachedOnlyThroughATableOfPointers) {
  CAPTURE_OR_RETURN("table", "transform_table");
  ASSERT_EQ(run_.said["address"].size(), 7u);
  for (const std::uint64_t row : run_.said["address"]) expect_in_place(row, run_.value("words"));
}

TEST_F(CapturedMemory, OfSeveralDispatchesIsThatOfEach) {
  runner_.config.dispatches = DispatchList::parse("0-2");
  CAPTURE_OR_RETURN("atomic", "transform_atomic");
  ASSERT_EQ(reader_->manifest().dispatches.size(), 3u);
  for (std::uint32_t d = 0; d < 3; ++d) {
    EXPECT_EQ(words(run_.value("address"), 16, State::before, d)[3], 64 * d);
    EXPECT_EQ(words(run_.value("address"), 16, State::after, d)[3], 64 * (d + 1));
    EXPECT_EQ(dispatch(d).kernel_index, d);
  }
  EXPECT_EQ(run_.value("result"), 192u);
}

TEST_F(CapturedMemory, PointersIntoCodeAreFoundAndNamed) {
  CAPTURE_OR_RETURN("functions", "transform_by_function");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_TRUE(dispatch().code_pointers_complete);
  std::vector<std::string> names;
  for (const auto& pointer : dispatch().code_pointers)
    if (pointer.address == run_.value("table") || pointer.address == run_.value("table") + 8)
      names.push_back(pointer.symbol);
  EXPECT_THAT(names, ::testing::ElementsAre("_Z6triplej", "_Z5twicej"));
}

TEST_F(CapturedMemory, AmongStreamsThatDependOnEachOther) {
  CAPTURE_OR_RETURN("streams", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
  EXPECT_THAT(run_.only()->notes, ::testing::IsEmpty());  // every other queue was idle
}

TEST_F(CapturedMemory, AfterAForkOfTheProcess) {
  CAPTURE_OR_RETURN("forked", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(CapturedMemory, WhenTheApplicationEndsAtOnce) {
  CAPTURE_OR_RETURN("exits_at_once", "transform", 3);
  expect_in_place(run_.value("address"), run_.value("words"));
}

// The kernel faults on memory, or stops itself: the state before is kept and marked, the application ends as it would.
TEST_F(CapturedMemory, BeforeAFaultIsKeptAndMarked) {
  for (const auto& [kind, reason] :
       {std::pair{"faulting", "memory fault"}, std::pair{"trapping", "the queue reported an error"}}) {
    std::filesystem::remove_all(runner_.config.output);
    std::filesystem::remove_all(runner_.config.status_folder);
    std::filesystem::create_directory(runner_.config.status_folder);
    runner_.config.pattern = "transform_and_*";
    const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", kind}, false);
    run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", kind});
    EXPECT_NE(plain.process.exit_status, 0) << kind;
    EXPECT_EQ(run_.process.exit_status, plain.process.exit_status) << kind;
    ASSERT_NE(run_.only(), nullptr);
    ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
    reader_.emplace(runner_.config.output);
    EXPECT_FALSE(dispatch().has_after);
    EXPECT_THAT(dispatch().incomplete_reason, ::testing::HasSubstr(reason));
    const auto before = words(run_.value("address"), 40000, State::before);
    for (std::uint32_t i = 0; i < before.size(); ++i) ASSERT_EQ(before[i], pattern(i));
  }
}

TEST_F(CapturedMemory, TheResultOfTheApplicationIsThatOfAPlainRun) {
  for (const char* kind : {"device", "streams", "table", "atomic"}) {
    runner_.config.pattern = "re:transform.*";
    const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", kind}, false);
    const CapturedRun captured = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", kind});
    EXPECT_EQ(plain.process.exit_status, captured.process.exit_status) << kind;
    EXPECT_EQ(plain.process.standard_error, captured.process.standard_error) << kind;
    EXPECT_EQ(plain.value("result"), captured.value("result")) << kind;
  }
}

}  // namespace
}  // namespace kerncap::capture
