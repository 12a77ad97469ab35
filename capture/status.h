// What the capture library tells the `kerncap` program: one JSON file for each process, replaced as a whole at every
// change, so that it can be read at any moment and says the last known truth of a process that was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/json.h"

namespace kerncap::capture {

enum class StatusState {
  armed,      // loaded and waiting for the kernel
  capturing,  // the kernel is held and memory is being read; bytes_done of bytes_total
  captured,   // the snapshot is whole under its name
  failed,     // nothing was captured; `reason` says why, the application ran on
  passive,    // another process has taken the kernel, or this one was not chosen
  profiled,   // Mode::profile: the numbers so far
};
const char* to_string(StatusState state);

struct KernelStatus {
  std::string symbol, demangled;  // "_Z3addPfS_i.kd", "add(float*, float*, int)"
  std::string code_object;        // digest; empty when it was never needed
  std::uint64_t dispatches = 0;
  bool matches = false;  // the pattern

  // Mode::profile. Times are device nanoseconds over the `timed` dispatches.
  struct Shape {
    std::uint32_t grid[3] = {}, workgroup[3] = {};  // work-items
    std::uint64_t dispatches = 0;
    bool operator==(const Shape&) const = default;
  };
  struct Timed {
    std::uint64_t kernel_index = 0, index = 0, nanoseconds = 0;
  };
  std::uint64_t timed = 0, total_ns = 0, minimum_ns = 0, maximum_ns = 0;
  std::uint64_t slowest = 0;          // the dispatch of maximum_ns, among this kernel's
  std::vector<Shape> shapes;          // the first 16
  std::vector<Timed> dispatch_times;  // the first 4096: among this kernel's dispatches, among all, duration
  std::uint32_t sgprs = 0, vgprs = 0, agprs = 0, group_segment_size = 0, private_segment_size = 0;
};

struct Status {
  std::uint64_t process = 0;
  std::vector<std::string> command_line;
  StatusState state = StatusState::armed;
  std::string reason;
  bool ambiguous = false;               // several launched kernels match (those with `matches`): the first was captured
  std::string snapshot;                 // when captured
  std::vector<std::uint64_t> captured;  // the kernel's dispatch numbers in it, from 0
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::uint64_t stored_bytes = 0;  // in the snapshot's chunk files
  std::uint64_t held_ns = 0;       // how long the application's queues were held, in all
  // Dispatches of wanted kernels that did not pass Config's choices, each counted under its first reason.
  struct Refused {
    std::uint64_t by_shape = 0, by_range = 0, by_time = 0;
    std::vector<KernelStatus::Shape> shapes;  // that were refused: the first 16
    std::vector<std::string> ranges;          // that the application opened: the first 50 names; when one was asked for
  } refused;
  std::vector<KernelStatus> kernels;  // every kernel seen in a loaded code object, dispatched or not
  std::vector<std::string> notes;     // what a person should know about the result
};

support::Json to_json(const Status& status);
Status status_from_json(const support::Json& document, std::string_view what);  // throws Error{bad_input}

// Every status in the folder, in no order; unreadable files are skipped.
std::vector<Status> read_statuses(const std::filesystem::path& folder);

}  // namespace kerncap::capture
