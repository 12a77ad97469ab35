// How much device memory the processes of one emulated machine use together, so that hipMalloc fails past the size of
// the card whoever holds the rest.
//
// Nothing is left behind by a process that dies, however it dies: each publishes its numbers in an anonymous file of
// its own (memfd) and says where in the name of an abstract socket, "kerncap-softgpu/USER/MACHINE/PROCESS/DESCRIPTOR".
// Both go with the process. Others find the names in /proc/net/unix and read the numbers through /proc/PROCESS/fd,
// which the kernel allows to the same user only. Processes in other network or process namespaces are not seen.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace kerncap::softgpu {

class SharedUsage {
 public:
  static constexpr unsigned most_devices = 16;

  // `machine` names the emulated machine; empty, or refused by the system: this process has its devices to itself.
  explicit SharedUsage(const std::string& machine);
  ~SharedUsage();
  SharedUsage(const SharedUsage&) = delete;
  SharedUsage& operator=(const SharedUsage&) = delete;

  // This process's bytes of a device. Lives as long as this object.
  std::atomic<std::uint64_t>& own(unsigned device) { return (*numbers_)[device]; }
  // Those of all the others, at this moment.
  std::uint64_t others(unsigned device) const noexcept;

  // In the child of a fork: the parent's numbers are not the child's. Async-signal-safe.
  static void close_after_fork() noexcept;

 private:
  using Numbers = std::array<std::atomic<std::uint64_t>, most_devices>;

  Numbers private_{};
  Numbers* numbers_ = &private_;
  std::string stem_;  // of the names of this machine's processes
  int file_ = -1, socket_ = -1;
};

}  // namespace kerncap::softgpu
