// Every kind of memory that HIP hands out, captured from a real application on the real runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "capture/e2e/captured_run.h"
#include "core/snapshot/reader.h"

namespace kerncap::capture {
namespace {

using snapshot::Dispatch;
using snapshot::Reader;
using snapshot::Region;
using snapshot::RegionKind;
using snapshot::State;
using testing::CapturedRun;

std::uint32_t pattern(std::uint32_t i, std::uint32_t seed = 5) { return i * 2654435761u + seed; }
std::uint32_t changed(std::uint32_t v) { return v * 3 + 1; }

class CapturedMemory : public ::testing::Test {
 protected:
  // Runs the program, expects its plain behaviour, and opens the snapshot.
  void capture(const std::string& kind, const std::string& kernel, int exit_status = 0) {
    runner_.config.pattern = kernel;
    run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", kind});
    if (run_.process.exit_status == 77)
      GTEST_SKIP() << "this machine has no such memory: " << run_.process.standard_error;
    ASSERT_EQ(run_.process.exit_status, exit_status) << run_.process.standard_error;
    ASSERT_NE(run_.only(), nullptr);
    ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
    reader_.emplace(runner_.config.output);
    EXPECT_THAT(reader_->verify({}), ::testing::IsEmpty());
    EXPECT_THAT(dispatch().not_captured, ::testing::IsEmpty());
  }

  const Dispatch& dispatch(std::size_t number = 0) const { return reader_->manifest().dispatches.at(number); }

  std::optional<std::size_t> region_of(std::uint64_t address) const {
    for (std::size_t r = 0; r < dispatch().regions.size(); ++r)
      if (address - dispatch().regions[r].address < dispatch().regions[r].size) return r;
    return std::nullopt;
  }

  std::vector<std::uint32_t> words(std::uint64_t address, std::size_t count, State state,
                                   std::size_t number = 0) const {
    std::vector<std::uint32_t> out(count);
    const auto region = region_of(address);
    EXPECT_TRUE(region) << "no region covers " << std::hex << address;
    if (region)
      reader_->read(number, *region, state, address - dispatch(number).regions[*region].address,
                    std::as_writable_bytes(std::span(out)));
    return out;
  }

  // The kernel's words hold the pattern before, and what the kernel makes of it after.
  void expect_in_place(std::uint64_t address, std::size_t count) const {
    const auto before = words(address, count, State::before), after = words(address, count, State::after);
    std::size_t wrong_before = 0, wrong_after = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      wrong_before += before[i] != pattern(i);
      wrong_after += after[i] != changed(pattern(i));
    }
    EXPECT_EQ(wrong_before, 0u);
    EXPECT_EQ(wrong_after, 0u);
  }

  const Region& region(std::uint64_t address) const { return dispatch().regions.at(region_of(address).value()); }

  testing::Runner runner_;
  CapturedRun run_;
  std::optional<Reader> reader_;
};

#define CAPTURE_OR_RETURN(...)                    \
  do {                                            \
    capture(__VA_ARGS__);                         \
    if (HasFatalFailure() || IsSkipped()) return; \
  } while (0)

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

TEST_F(CapturedMemory, BeforeAFaultIsKeptAndMarked) {
  runner_.config.pattern = "transform_and_fault";
  const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "faulting"}, false);
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "faulting"});
  EXPECT_EQ(run_.process.exit_status, plain.process.exit_status);
  ASSERT_NE(run_.only(), nullptr);
  ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
  reader_.emplace(runner_.config.output);
  EXPECT_FALSE(dispatch().has_after);
  EXPECT_THAT(dispatch().incomplete_reason, ::testing::HasSubstr("memory fault"));
  const auto before = words(run_.value("address"), 40000, State::before);
  for (std::uint32_t i = 0; i < before.size(); ++i) ASSERT_EQ(before[i], pattern(i));
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

// ---- choosing, and saying what happened ---------------------------------------------------------------------------

class Choice : public CapturedMemory {};

TEST_F(Choice, AKernelThatIsNotSeenLeavesTheOthersNames) {
  runner_.config.pattern = "no_such_kernel";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::armed);
  EXPECT_FALSE(std::filesystem::exists(runner_.config.output));
  std::uint64_t dispatches = 0;
  for (const KernelStatus& k : run_.only()->kernels)
    if (k.demangled == "transform(unsigned int*, unsigned int)") dispatches = k.dispatches;
  EXPECT_EQ(dispatches, 1u);
}

TEST_F(Choice, SeveralLaunchedMatchesAreReported) {
  runner_.config.pattern = "transform*";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "streams"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_TRUE(run_.only()->ambiguous);
  std::vector<std::string> launched;
  for (const KernelStatus& k : run_.only()->kernels)
    if (k.matches && k.dispatches > 0) launched.push_back(k.demangled);
  EXPECT_THAT(launched, ::testing::UnorderedElementsAre("transform(unsigned int*, unsigned int)",
                                                        "transform_atomic(unsigned int*, unsigned int)"));
}

TEST_F(Choice, MatchesThatAreOnlyLoadedDoNotMakeAPatternAmbiguous) {
  runner_.config.pattern = "transform*";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::captured);
  EXPECT_FALSE(run_.only()->ambiguous);
}

TEST_F(Choice, TooMuchMemoryIsRefusedAndTheApplicationRunsOn) {
  runner_.config.pattern = "transform";
  runner_.config.max_bytes = 1000;
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::failed);
  EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("--max-bytes"));
  EXPECT_FALSE(std::filesystem::exists(runner_.config.output));
}

TEST_F(Choice, AnExistingSnapshotIsNotTouchedWithoutReplace) {
  std::filesystem::create_directory(runner_.config.output);
  runner_.config.pattern = "transform";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::failed);
  EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("exists already"));
  EXPECT_TRUE(std::filesystem::is_empty(runner_.config.output));
}

TEST_F(Choice, AnotherCodeObjectOfTheSameKernelIsNotTaken) {
  runner_.config.pattern = "transform";
  runner_.config.code_object = "0000";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::armed);
}

TEST_F(Choice, ADispatchThatNeverComesLeavesWhatCame) {
  runner_.config.dispatches = DispatchList::parse("1,7");
  CAPTURE_OR_RETURN("atomic", "transform_atomic");
  EXPECT_EQ(run_.only()->captured, std::vector<std::uint64_t>{1});
  EXPECT_THAT(run_.only()->notes, ::testing::Contains(::testing::HasSubstr("ended before")));
}

TEST_F(Choice, AProcessThatWasNotChosenIsLeftAlone) {
  runner_.config.pattern = "transform";
  runner_.config.process = "*somebody_else";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  EXPECT_TRUE(run_.statuses.empty());
}

TEST_F(Choice, AFullDiskHarmsNobody) {
  const std::filesystem::path small = runner_.folder.path() / "small";
  std::filesystem::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=48k") != 0) GTEST_SKIP() << "only root may mount a small disk";
  runner_.config.pattern = "transform";
  runner_.config.compression_level = 0;
  runner_.config.output = small / "out.kcap";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  const bool empty = std::filesystem::is_empty(small);
  ::umount(small.c_str());
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::failed);
  EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("No space left"));
  EXPECT_TRUE(empty);
}

TEST_F(Choice, AFloodOfLaunchesDuringACaptureIsWaitedFor) {
  runner_.config.pattern = "increment";
  runner_.config.dispatches = DispatchList::parse("1");
  run_ = runner_.run({KERNCAP_TEST_APPS "/launch_flood", "40000", "512"});
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  EXPECT_EQ(run_.value("result"), 40000u);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
}

TEST_F(Choice, AKernelOfTheSecondDeviceTakesBothDevicesMemory) {
  runner_.config.pattern = "both";
  runner_.environment["KERNCAP_TEST_DEVICES"] = "2";
  run_ = runner_.run({KERNCAP_TEST_APPS "/devices"});
  if (run_.process.exit_status == 77) GTEST_SKIP() << "needs two devices";
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_NE(run_.only(), nullptr);
  ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
  reader_.emplace(runner_.config.output);
  ASSERT_EQ(reader_->manifest().agents.size(), 2u);
  EXPECT_EQ(dispatch().agent, 1);
  EXPECT_EQ(region(run_.value("first")).agent, 0);
  EXPECT_EQ(region(run_.value("second")).agent, 1);
  EXPECT_EQ(words(run_.value("second"), 256, State::after)[9], 2 * 9u + 1);
  EXPECT_EQ(words(run_.value("second"), 256, State::before)[9], 9u);
  EXPECT_EQ(words(run_.value("first"), 256, State::before)[9], 9u);
}

TEST_F(Choice, AGraphsKernelIsCaptured) {
  CAPTURE_OR_RETURN("graph", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(Choice, ACooperativeKernelIsCapturedOnItsQueue) {
  const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "cooperative"}, false);
  if (plain.process.exit_status != 0) GTEST_SKIP() << "no cooperative launches here: " << plain.process.standard_error;
  CAPTURE_OR_RETURN("cooperative", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(Choice, KernelsOfSeveralHostThreadsAreCapturedOneByOne) {
  runner_.config.dispatches = DispatchList::parse("0-3");
  CAPTURE_OR_RETURN("threads", "transform_atomic");
  ASSERT_EQ(reader_->manifest().dispatches.size(), 4u);
  for (std::size_t d = 0; d < 4; ++d) {
    std::uint32_t sum_before = 0, sum_after = 0;
    for (const std::uint64_t address : run_.said["address"]) {
      sum_before += words(address, 16, State::before, d)[3];
      sum_after += words(address, 16, State::after, d)[3];
    }
    EXPECT_EQ(sum_after - sum_before, 64u) << d;  // its own work and nobody else's
  }
}

TEST(Profile, CountsAndTimesEveryKernel) {
  testing::Runner runner;
  runner.config.mode = Mode::profile;
  const CapturedRun run = runner.run({KERNCAP_TEST_APPS "/memory_kinds", "streams"});
  EXPECT_EQ(run.process.exit_status, 0) << run.process.standard_error;
  ASSERT_NE(run.only(), nullptr);
  EXPECT_EQ(run.only()->state, StatusState::profiled);
  bool found = false;
  for (const KernelStatus& k : run.only()->kernels) {
    if (k.demangled != "transform_atomic(unsigned int*, unsigned int)") continue;
    found = true;
    EXPECT_EQ(k.dispatches, 40u);
    EXPECT_EQ(k.timed, 40u);
    EXPECT_GT(k.total_ns, 0u);
    EXPECT_GE(k.maximum_ns, k.minimum_ns);
    ASSERT_EQ(k.shapes.size(), 1u);
    EXPECT_EQ(k.shapes[0].grid[0], 1024u);
    EXPECT_EQ(k.shapes[0].dispatches, 40u);
    EXPECT_GT(k.vgprs, 0u);
    EXPECT_EQ(k.code_object.size(), 64u);
    EXPECT_EQ(k.dispatch_times.size(), 40u);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace kerncap::capture
