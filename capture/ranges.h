// The ranges that an application marks with ROCTX, and whether a dispatch that is submitted now lies in a wanted one.
//
// Ranges reach us on two ways: libkerncap-ranges.so, preloaded, stands before libroctx64's functions; and a ROCTX
// library that registers its table with rocprofiler-register has its entries replaced. Both keep one Ranges each.
// Thread-safety: all members may be called in parallel. Nothing throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace kerncap::capture {

// The wanted ranges' glob (Config::range) for the preloaded part.
inline constexpr const char* range_variable = "KERNCAP_CAPTURE_RANGE";

class Ranges {
 public:
  void watch(std::string glob);  // before the first range; every range is outside until then

  int push(const char* name) noexcept;  // the nesting level, from 0
  int pop() noexcept;                   // the level that ended, -1 when there was none
  void start(std::uint64_t id, const char* name) noexcept;
  void stop(std::uint64_t id) noexcept;
  void thread_ends(std::size_t open) noexcept;  // with so many wanted ranges still pushed

  // For the calling thread: a started range counts for every thread, a pushed one for its own. A thread that has never
  // pushed a range is a helper of those that have (HIP submits from a thread of its own at times): there, any counts.
  bool inside() const noexcept;

  // The first names that came, each once; empty when the application has marked nothing.
  std::vector<std::string> names() const;

 private:
  bool wanted(const char* name) noexcept;

  mutable std::mutex mutex_;  // the next three
  std::string glob_;
  std::vector<std::string> names_;
  std::unordered_set<std::uint64_t> started_;                   // wanted ones
  std::atomic<std::int64_t> open_pushed_{0}, open_started_{0};  // wanted ones, of all threads
};

// The process's ranges, in each of the two libraries.
Ranges& ranges();

// What libkerncap-ranges.so exports for the capture library under the name `range_source_entry`.
struct RangeSource {
  bool (*inside)();
  std::size_t (*names)(char* lines, std::size_t size);  // newline-separated into `lines`; returns the bytes written
};
inline constexpr const char* range_source_entry = "kerncap_ranges_1";

}  // namespace kerncap::capture
