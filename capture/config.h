// What the capture library is asked to do: a JSON file named by KERNCAP_CAPTURE_CONFIG, written by the `kerncap`
// program.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/json.h"

namespace kerncap::capture {

inline constexpr const char* config_variable = "KERNCAP_CAPTURE_CONFIG";

// Which dispatches of the kernel, of those that pass Config's other choices: counted from 0 in the order in which the
// application submits them.
class DispatchList {
 public:
  struct Range {
    std::uint64_t first = 0, last = 0, step = 1;  // first, first + step, ... up to last
    bool operator==(const Range&) const = default;
  };

  DispatchList() : ranges_{Range{}} {}  // the first dispatch
  explicit DispatchList(std::vector<Range> ranges);

  // "0", "1,4", "10-19", "100-999:100" and combinations; "0-:100" has no end. Throws Error{usage}.
  static DispatchList parse(std::string_view text);

  bool contains(std::uint64_t index) const;
  bool finished_after(std::uint64_t index) const;  // nothing of the list comes after `index`
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const DispatchList&) const = default;

 private:
  std::vector<Range> ranges_;
};

// A grid or a workgroup in work-items; 0 stands for any extent.
struct ShapePattern {
  std::array<std::uint32_t, 3> extent{};

  // "256", "256x1x1", "64x*": what is left out at the end is 1, '*' is any. Throws Error{usage}.
  static ShapePattern parse(std::string_view text);
  bool matches(const std::array<std::uint32_t, 3>& shape) const;
  bool operator==(const ShapePattern&) const = default;
};

enum class Mode { capture, profile };

struct Config {
  Mode mode = Mode::capture;
  std::filesystem::path status_folder;  // absolute; one status-<pid>.json for each process goes there

  // Mode::capture
  std::string pattern;      // codeobject::NamePattern
  std::string code_object;  // only kernels of the code object whose digest begins so; empty: any
  // Which of its dispatches count; `dispatches` numbers those that pass all of these.
  ShapePattern grid, block;
  std::string range;  // a glob: submitted while a ROCTX range of such a name is open; empty: any
  std::uint64_t after_ms = 0, before_ms = 0;  // since the runtime was started; 0: no limit
  DispatchList dispatches;
  std::filesystem::path output;         // absolute; the snapshot's folder
  bool replace = false;                 // an existing snapshot is exchanged for the new one when that is whole
  bool reachable_only = false;          // only what pointers lead to from the kernel's arguments, not everything
  std::uint64_t max_bytes = 0;          // refuse to capture more memory than this; 0: no limit
  unsigned drain_timeout_ms = 2000;     // how long other queues may take to become idle
  unsigned kernel_timeout_ms = 600000;  // how long the kernel may take before the capture is given up
  unsigned threads = 0;                 // hashing and compression; 0: the machine's cores, at most 16
  int compression_level = 1;            // zstd's; 0: none

  // Both modes. A glob over the program's file name or its whole path; empty: every process that loads the library.
  std::string process;
};

support::Json to_json(const Config& config);
Config config_from_json(const support::Json& document, std::string_view what);  // throws Error{bad_input}

}  // namespace kerncap::capture
