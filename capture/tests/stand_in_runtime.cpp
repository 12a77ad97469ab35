#include "capture/tests/stand_in_runtime.h"

#include <algorithm>
#include <mutex>

#include "capture/tests/stand_in_parts.h"

namespace kerncap::capture::testing {
namespace {

StandInRuntime* the_runtime = nullptr;
std::mutex calls_mutex;
std::map<std::string, unsigned> call_counts;
std::string failing_function;
unsigned failing_call = 0;

hsa_status_t init() {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t shut_down() {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}

constexpr std::size_t most_entries = 100;
struct WholeAmdTable {
  alignas(AmdExtTable) char bytes[amd_table_size(most_entries)];
};

}  // namespace

bool counted(const char* function) {
  const std::lock_guard lock(calls_mutex);
  const unsigned n = call_counts[function]++;
  return function == failing_function && n == failing_call;
}

StandInRuntime::StandInRuntime(ApiTableVersion amd_version) {
  the_runtime = this;
  static CoreApiTable core_table;
  static WholeAmdTable amd_table;
  std::memset(static_cast<void*>(&core_table), 0, sizeof core_table);
  // What lies beyond a table's size is nobody's: a tool that believes it crashes.
  std::memset(&amd_table, 0xa5, sizeof amd_table);
  std::memset(&amd_table, 0, std::min<std::size_t>(sizeof amd_table, amd_version.minor_id));
  root_.core_ = &core_table;
  root_.amd_ext_ = reinterpret_cast<AmdExtTable*>(&amd_table);
  core_table.version = {2, sizeof(CoreApiTable), 0, 0};
  core_table.hsa_init_fn = init;
  core_table.hsa_shut_down_fn = shut_down;
  core_table.hsa_status_string_fn = [](hsa_status_t, const char**) { return HSA_STATUS_ERROR; };
  AmdExtTable amd{};
  amd.version = amd_version;
  AmdMiddle middle{};
  AmdTail tail{};
  fill_queues(core_table, amd);
  fill_machine(core_table, amd, middle, tail);
  fill_code(core_table);

  // Laid out as a runtime of that version does.
  auto* live = reinterpret_cast<char*>(root_.amd_ext_);
  const auto* ours = reinterpret_cast<const char*>(&amd);
  std::memcpy(live, ours, amd_middle_offset);
  std::memcpy(live + amd_behind_middle + amd_shift(amd), ours + amd_behind_middle, amd_common_end - amd_behind_middle);
  if (this->middle() != nullptr) *this->middle() = middle;
  if (this->tail() != nullptr) *this->tail() = tail;
}

StandInRuntime& StandInRuntime::current() { return *the_runtime; }

AmdExtTable StandInRuntime::amd() {
  AmdExtTable copy{};
  copy_amd_table(copy, *root_.amd_ext_);
  return copy;
}

AmdMiddle* StandInRuntime::middle() { return live_middle(*root_.amd_ext_); }
AmdTail* StandInRuntime::tail() { return live_tail(*root_.amd_ext_); }

void StandInRuntime::fail(const std::string& function, unsigned nth) {
  const std::lock_guard lock(calls_mutex);
  failing_function = function;
  failing_call = nth;
  call_counts.clear();
}

std::map<std::string, unsigned> StandInRuntime::calls() const {
  const std::lock_guard lock(calls_mutex);
  return call_counts;
}

std::vector<std::uint64_t> StandInRuntime::load(const std::vector<std::byte>& bytes,
                                                const std::vector<StandInKernel>& all) {
  return load_code(core(), bytes, all);
}

void StandInRuntime::unload() {
  core().hsa_executable_destroy_fn({81});
  core().hsa_code_object_reader_destroy_fn({71});
}

void StandInRuntime::take_code_back() {
  core().hsa_code_object_reader_destroy_fn({71});
  overwrite_code();
}

void StandInRuntime::report_error(hsa_queue_t* queue, hsa_status_t status) { queue_error(queue, status); }

void StandInRuntime::submit(hsa_queue_t* queue, const std::vector<hsa_kernel_dispatch_packet_t>& packets) {
  submit_packets(queue, packets.data(), packets.size());
}

}  // namespace kerncap::capture::testing
