// A GPU for the tests of the instruction set: memory, a loader of code objects, and a way to run a kernel, without the
// kernel's ABI.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/execution.h"

namespace kerncap::softgpu::isa {

class TestGpu : public DispatchHost {
 public:
  explicit TestGpu(const std::string& processor);
  ~TestGpu() override;

  // Zeroed device memory; `permissions` as in memory.h.
  std::uint64_t allocate(std::uint64_t bytes, unsigned permissions = permission_read | permission_write);
  template <class T>
  T* host(std::uint64_t address) {
    return reinterpret_cast<T*>(memory_.translate(address, permission_read));
  }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(values.size() * sizeof(T));
    std::memcpy(host<T>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) {
    return {host<T>(address), host<T>(address) + count};
  }

  // Loads an ELF code object (segments, no relocations); kernel descriptors are found by `NAME.kd`.
  void load(const std::string& path);
  void load(const std::vector<char>& image);
  std::uint64_t symbol(const std::string& name) const;

  struct Launch {
    std::array<std::uint32_t, 3> grid{1, 1, 1}, group{1, 1, 1};  // in work-items
    std::vector<std::byte> arguments;
    unsigned threads = 1;
    std::uint64_t seed = 0;
    std::uint32_t private_bytes = 0, group_bytes = 0;

    template <class T>
    Launch& add(T value) {
      while (arguments.size() % alignof(T)) arguments.push_back(std::byte{0});
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      arguments.insert(arguments.end(), bytes, bytes + sizeof(T));
      return *this;
    }
  };
  DispatchError run(const std::string& kernel, Launch launch);
  const DispatchCounters& counters() const { return counters_; }
  InstructionSet& isa() { return *isa_; }
  AddressSpace& memory() { return memory_; }
  std::vector<std::uint32_t> interrupts;

  std::uint64_t timestamp() noexcept override { return ++clock_; }
  void interrupt(std::uint32_t event_id) noexcept override { interrupts.push_back(event_id); }

 private:
  AddressSpace memory_;
  std::unique_ptr<InstructionSet> isa_;
  std::vector<void*> blocks_;
  std::uint64_t next_address_ = 0x7e0000000000;
  std::map<std::string, std::uint64_t> symbols_;
  DispatchCounters counters_;
  std::atomic<std::uint64_t> clock_{0};
};

}  // namespace kerncap::softgpu::isa
