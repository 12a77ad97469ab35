// Deciding where the ROCm runtime's next allocation lands.
//
// libhsakmt (a library of its own, or inside libhsa-runtime64 from ROCm 6.3 on) takes every device address range from
// an anonymous PROT_NONE mmap() and aligns inside what it got; the surplus on both sides, guard pages included, it
// gives back with munmap(). This program exports its own mmap(), mmap64() and munmap() (linked with
// -Wl,--export-dynamic-symbol), so that the runtime calls them: while a Steer is armed, the calling thread's next such
// request is answered with the wanted range. Only [address, address + size) is really mapped; the surplus exists on
// paper and its munmap() does nothing, so neighbouring ranges may be as close as they were in the application.
//
// The exported functions call the next definition, so that a preloaded library still sees the traffic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kerncap::replay {

// Takes [address, address + size) out of the process's reach: PROT_NONE, nothing else will be put there. Page aligned.
// False when something is there already.
bool reserve_range(std::uint64_t address, std::uint64_t size);

// Gives a reserved range back (before a fixed-address call of the runtime, or an mmap(MAP_FIXED_NOREPLACE) of ours).
void release_range(std::uint64_t address, std::uint64_t size);

// Arms steering for this thread: its next anonymous PROT_NONE mmap() without an address returns memory such that the
// aligned block begins at `address`. The range must have been reserved by reserve_range().
class Steer {
 public:
  // guard_pages: what the runtime leaves before the block (1 in every version read).
  Steer(std::uint64_t address, std::uint64_t size, unsigned guard_pages = 1);
  ~Steer();
  Steer(const Steer&) = delete;
  Steer& operator=(const Steer&) = delete;
  bool used() const;  // did the runtime ask?
};

struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::string permissions, name;  // name: path, "[stack]", or empty for anonymous memory
};

std::vector<Mapping> parse_maps(std::string_view proc_self_maps);
std::vector<Mapping> own_mappings();

// "0x7f12... (libc.so.6)" of every mapping that overlaps; empty when the range is free.
std::vector<Mapping> overlapping(const std::vector<Mapping>& mappings, std::uint64_t address, std::uint64_t size);
std::string describe(const Mapping& mapping);

}  // namespace kerncap::replay
