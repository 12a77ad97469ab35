// How the stand-in runtime is made of its parts: each fills in its entries of the tables.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "capture/tests/stand_in_runtime.h"

namespace kerncap::capture::testing {

// True when this call is the one that was chosen to fail.
bool counted(const char* function);
#define KERNCAP_COUNT()                             \
  do {                                              \
    if (counted(__func__)) return HSA_STATUS_ERROR; \
  } while (0)

template <typename T>
hsa_status_t put(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return HSA_STATUS_SUCCESS;
}

void* pages(std::size_t size);  // as mmap gives them; null when there are none

// stand_in_queues.cpp: signals, queues, and the hardware that works their packets off.
void fill_queues(CoreApiTable& core, AmdExtTable& amd);
void set_kernel(std::uint64_t kernel_object, std::function<void(const void*)> run);
void complete(hsa_signal_t signal);  // what the hardware does at the end of a copy
void queue_error(hsa_queue_t* queue, hsa_status_t status);
void submit_packets(hsa_queue_t* queue, const void* packets, std::uint64_t count);

// stand_in_machine.cpp: agents, pools, memory and copies.
void fill_machine(CoreApiTable& core, AmdExtTable& amd, AmdMiddle& middle, AmdTail& tail);

// stand_in_code.cpp: executables, symbols, the loader extension.
void fill_code(CoreApiTable& core);
std::vector<std::uint64_t> load_code(CoreApiTable& core, const std::vector<std::byte>& bytes,
                                     const std::vector<StandInKernel>& kernels);

void overwrite_code();

}  // namespace kerncap::capture::testing
