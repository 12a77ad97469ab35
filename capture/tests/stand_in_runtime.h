// A stand-in for the HSA runtime and its GPU, in this process: just enough for the capture library to work on, with
// every call counted and any call made to fail. One for each process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/runtime_table.h"

namespace kerncap::capture::testing {

inline constexpr hsa_agent_t cpu{1}, gpu{2};
inline constexpr std::uint64_t host_fine = 11, host_coarse = 12, device_coarse = 21, device_fine = 22,
                               device_extended = 23;

struct StandInKernel {
  std::string symbol;  // "one.kd"
  std::function<void(const void* kernarg)> run;
};

class StandInRuntime {
 public:
  // `amd_version`: of which release's layout its AMD table is (runtime_table.h).
  explicit StandInRuntime(ApiTableVersion amd_version = {2, amd_table_size(70), 0, 0});
  static StandInRuntime& current();

  HsaApiTable& table() { return root_; }
  CoreApiTable& core() { return *root_.core_; }
  AmdExtTable amd();    // what the live table holds now, in our headers' layout
  AmdMiddle* middle();  // null when that release has none
  AmdTail* tail();

  // Makes the `nth` call (from 0) of a function fail with HSA_STATUS_ERROR; counted from now on.
  void fail(const std::string& function, unsigned nth);
  std::map<std::string, unsigned> calls() const;

  // Loads `bytes` as a code object with these kernels through the table, as an application would; returns the kernel
  // objects.
  std::vector<std::uint64_t> load(const std::vector<std::byte>& bytes, const std::vector<StandInKernel>& kernels);
  void unload();
  void take_code_back();  // the application destroys its reader and uses the memory of the code object's file again

  // As the runtime does for a queue that has met an error.
  void report_error(hsa_queue_t* queue, hsa_status_t status);

  // Hands packets over in one submission, as the runtime's ABI allows.
  void submit(hsa_queue_t* queue, const std::vector<hsa_kernel_dispatch_packet_t>& packets);

 private:
  HsaApiTable root_{};
};

hsa_signal_t make_signal(hsa_signal_value_t value);
bool reaches_zero(hsa_signal_t signal, unsigned milliseconds);

}  // namespace kerncap::capture::testing
