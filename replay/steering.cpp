#include "replay/steering.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

namespace kerncap::replay {
namespace {

constexpr std::uint64_t page = 4096;

struct Armed {
  std::uint64_t address = 0, size = 0, guard = 0;
  bool armed = false, used = false;
};
// Plain data: usable from the first mmap() of the dynamic loader on, before any constructor has run.
thread_local constinit Armed steer;

// Surplus that exists on paper only. One steered allocation leaves at most two pieces, given back before the next.
struct Phantom {
  std::uint64_t begin = 0, end = 0;
};
thread_local constinit std::array<Phantom, 2> phantoms{};

using MmapFunction = void* (*)(void*, std::size_t, int, int, int, off_t);
using MunmapFunction = int (*)(void*, std::size_t);

// dlsym itself may map memory; until it has answered, the raw system call serves.
std::atomic<MmapFunction> next_mmap{nullptr};
std::atomic<MunmapFunction> next_munmap{nullptr};
std::atomic<bool> looking{false};

void look_for_next() {
  if (looking.exchange(true)) return;
  next_munmap = reinterpret_cast<MunmapFunction>(::dlsym(RTLD_NEXT, "munmap"));
  next_mmap = reinterpret_cast<MmapFunction>(::dlsym(RTLD_NEXT, "mmap"));
}

void* call_mmap(void* address, std::size_t length, int protection, int flags, int fd, off_t offset) {
  if (next_mmap.load() == nullptr) look_for_next();
  if (const MmapFunction next = next_mmap.load()) return next(address, length, protection, flags, fd, offset);
  const long result = ::syscall(SYS_mmap, address, length, protection, flags, fd, offset);
  return reinterpret_cast<void*>(result);
}

int call_munmap(void* address, std::size_t length) {
  if (next_munmap.load() == nullptr) look_for_next();
  if (const MunmapFunction next = next_munmap.load()) return next(address, length);
  return static_cast<int>(::syscall(SYS_munmap, address, length));
}

void* steered_mmap(void* address, std::size_t length, int protection, int flags, int fd, off_t offset) {
  const bool reserves =
      address == nullptr && protection == PROT_NONE && (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_FIXED) == 0;
  if (!steer.armed || !reserves || length < steer.size)
    return call_mmap(address, length, protection, flags, fd, offset);
  steer.armed = false;
  steer.used = true;
  void* placed =
      call_mmap(reinterpret_cast<void*>(steer.address), steer.size, protection, flags | MAP_FIXED, fd, offset);
  if (placed == MAP_FAILED) return placed;
  const std::uint64_t begin = steer.address - steer.guard, end = begin + length;
  phantoms[0] = {begin, steer.address};
  phantoms[1] = {steer.address + steer.size, end};
  return reinterpret_cast<void*>(begin);
}

int steered_munmap(void* address, std::size_t length) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  for (Phantom& phantom : phantoms) {
    if (phantom.begin < phantom.end && begin >= phantom.begin && begin + length <= phantom.end) return 0;
  }
  return call_munmap(address, length);
}

}  // namespace

bool reserve_range(std::uint64_t address, std::uint64_t size) {
  void* result = call_mmap(reinterpret_cast<void*>(address), size, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (result == MAP_FAILED) return false;
  if (reinterpret_cast<std::uint64_t>(result) == address) return true;
  call_munmap(result, size);  // a kernel older than MAP_FIXED_NOREPLACE takes the address as a hint
  return false;
}

void release_range(std::uint64_t address, std::uint64_t size) { call_munmap(reinterpret_cast<void*>(address), size); }

Steer::Steer(std::uint64_t address, std::uint64_t size, unsigned guard_pages) {
  steer = {address, (size + page - 1) / page * page, guard_pages * page, true, false};
  phantoms = {};
}

Steer::~Steer() {
  steer = {};
  phantoms = {};
}

bool Steer::used() const { return steer.used; }

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> result;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // "7f..-7f.. r-xp offset dev inode   path with spaces"
    Mapping mapping;
    std::istringstream fields(line);
    std::string range, offset, device, inode;
    if (!(fields >> range >> mapping.permissions >> offset >> device >> inode)) continue;
    const auto dash = range.find('-');
    if (dash == std::string::npos) continue;
    const char* const begin = range.data();
    const char* const end = begin + range.size();
    if (std::from_chars(begin, begin + dash, mapping.begin, 16).ec != std::errc{} ||
        std::from_chars(begin + dash + 1, end, mapping.end, 16).ec != std::errc{}) {
      continue;
    }
    std::getline(fields >> std::ws, mapping.name);
    result.push_back(std::move(mapping));
  }
  return result;
}

std::vector<Mapping> own_mappings() {
  std::ifstream file("/proc/self/maps");
  std::stringstream text;
  text << file.rdbuf();
  return parse_maps(text.str());
}

std::vector<Mapping> overlapping(const std::vector<Mapping>& mappings, std::uint64_t address, std::uint64_t size) {
  std::vector<Mapping> result;
  for (const Mapping& mapping : mappings) {
    if (mapping.begin < address + size && address < mapping.end) result.push_back(mapping);
  }
  return result;
}

std::string describe(const Mapping& mapping) {
  return fmt::format("{:#x}-{:#x} {} ({})", mapping.begin, mapping.end, mapping.permissions,
                     mapping.name.empty() ? "anonymous memory of the replaying process" : mapping.name);
}

}  // namespace kerncap::replay

// The program's exports: what the runtime's libraries find first when they look for these names.
extern "C" {
__attribute__((visibility("default"))) void* mmap(void* address, std::size_t length, int protection, int flags, int fd,
                                                  off_t offset) noexcept {
  return kerncap::replay::steered_mmap(address, length, protection, flags, fd, offset);
}
__attribute__((visibility("default"))) void* mmap64(void* address, std::size_t length, int protection, int flags,
                                                    int fd, off64_t offset) noexcept {
  return kerncap::replay::steered_mmap(address, length, protection, flags, fd, offset);
}
__attribute__((visibility("default"))) int munmap(void* address, std::size_t length) noexcept {
  return kerncap::replay::steered_munmap(address, length);
}
}
