// The captured address space, made again in this process: every placement of the plan at its address, or an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/device.h"
#include "replay/plan.h"

namespace kerncap::replay {

// Thrown when a wanted range is in use in this process: another layout of the process (a new try) may free it.
struct Occupied {
  std::string sentence;
};

// Before the runtime starts: takes the plan's ranges, so that nothing else is put there. Throws Occupied, and then
// has taken nothing.
void reserve(const Plan& plan);

// Allocates pools, vmem and registered memory at their addresses (code objects are the loader's business). Throws
// Error{environment} naming the range, what was asked and what came back. Never freed: the process ends with its
// replay.
void allocate(const Plan& plan, const Device& device);

// Makes ready for the three functions below: pinned buffers through which the GPU's copy engine works. Once a process.
void start_copying(const Device& device);

// Copies in either direction between this process's memory and any restored address; `host`: it is host memory, which a
// plain memcpy reaches. From any thread. What was read never stays in a buffer that a kernel could reach. Throw
// Error{environment}.
void write_memory(bool host, std::uint64_t address, std::span<const std::byte> bytes);
void read_memory(bool host, std::uint64_t address, std::span<std::byte> bytes);
void clear_memory(bool host, std::uint64_t address, std::uint64_t size);

bool is_host_memory(const Placement& placement);

// Where this process itself finds the byte that the GPU sees at `address`: elsewhere for memory that was registered
// under another address.
std::uint64_t access_address(const Placement& placement, std::uint64_t address);

}  // namespace kerncap::replay
