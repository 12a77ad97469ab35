#include "softgpu/aql_queue.h"

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "softgpu/control.h"
#include "softgpu/counter_clock.h"
#include "softgpu/gpu_access.h"
#include "softgpu/report.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t packet_size = 64;
constexpr unsigned packets_per_turn = 64;
constexpr std::size_t most_running = 16;  // kernels of one queue at a time
constexpr unsigned read_write = permission_read | permission_write;
constexpr std::uint32_t most_work_items = 1024, lds_bytes = 65536;

// AMD_AQL_FORMAT_PM4_IB: ROCr sends it to invalidate the instruction cache after it has loaded code.
constexpr unsigned vendor_pm4_ib = 1;

// Every packet kind keeps its completion signal in the last eight bytes.
std::uint64_t completion_signal_of(const std::byte* packet) {
  std::uint64_t signal;
  std::memcpy(&signal, packet + offsetof(hsa_kernel_dispatch_packet_t, completion_signal), sizeof signal);
  return signal;
}

bool satisfied(hsa_signal_condition32_t condition, std::int64_t value, std::int64_t reference) {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == reference;
    case HSA_SIGNAL_CONDITION_NE:
      return value != reference;
    case HSA_SIGNAL_CONDITION_LT:
      return value < reference;
    default:
      return value >= reference;
  }
}

abi::QueueException exception_of(DispatchStatus status) {
  switch (status) {
    case DispatchStatus::illegal_instruction:
      return abi::QueueException::wave_illegal_instruction;
    case DispatchStatus::bad_packet:
      return abi::QueueException::packet_code_invalid;
    case DispatchStatus::trap:
      return abi::QueueException::wave_abort;
    default:
      return abi::QueueException::wave_trap;
  }
}

}  // namespace

Progress AqlQueue::advance(std::uint64_t instructions) noexcept {
  if (stopped_ || suspended()) return Progress::idle;
  std::shared_ptr<Running> running;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Progress::waiting;
    Progress progress = Progress::idle;
    if (running_.size() < most_running) progress = process_packets();
    for (std::size_t tried = 0; tried < running_.size() && running == nullptr; ++tried) {
      const auto& next = running_[turn_++ % running_.size()];
      if (!next->ended) running = next;
    }
    if (running == nullptr || stopped_) return progress;
  }
  const bool alone = running->request.seed != 0;
  if (alone && running->busy.exchange(true)) return Progress::waiting;
  const DispatchStatus status = running->dispatch->advance(instructions);
  if (alone) running->busy.store(false);
  if (status == DispatchStatus::running) return Progress::kernel;
  if (status == DispatchStatus::idle) return Progress::waiting;

  const std::lock_guard lock(mutex_);
  if (!running->ended) {  // the first thread that sees the end
    running->ended = true;
    finish(*running, status);
  }
  return Progress::some;
}

Progress AqlQueue::process_packets() noexcept {
  if (doorbell_rang()) active_ = true;
  if (!active_) return Progress::idle;

  const AddressSpace& memory = device_.memory;
  auto* read_index = word_at<std::uint64_t>(memory, description_.read_pointer, read_write);
  auto* write_index = word_at<std::uint64_t>(memory, description_.write_pointer, permission_read);
  if (read_index == nullptr || write_index == nullptr) {
    raise_memory_fault(read_index == nullptr ? description_.read_pointer : description_.write_pointer, false, false);
    return Progress::idle;
  }
  const std::uint64_t packets = description_.ring_size / packet_size;
  for (unsigned turn = 0; turn < packets_per_turn; ++turn) {
    const std::uint64_t index = read_index->load(std::memory_order_relaxed) + running_.size();
    if (index >= write_index->load(std::memory_order_acquire)) {
      active_ = false;
      // A packet may have been added and its doorbell seen before this.
      if (index < write_index->load(std::memory_order_acquire)) active_ = true;
      return turn == 0 ? Progress::idle : Progress::some;
    }
    const std::uint64_t address = description_.ring_address + (index % packets) * packet_size;
    std::byte* packet = memory.translate_range(address, packet_size, read_write);
    if (packet == nullptr) {
      raise_memory_fault(address, false, false);
      return Progress::idle;
    }
    if (!running_.empty() && (running_.size() == most_running || !may_overlap(packet))) return Progress::some;
    switch (process(address, packet, index)) {
      case Step::next:
        break;
      case Step::wait:
        return turn == 0 ? Progress::waiting : Progress::some;
      case Step::running:
        break;  // the next kernel may start beside it
      case Step::stopped:
        return Progress::idle;
    }
  }
  return Progress::some;
}

bool AqlQueue::may_overlap(const std::byte* packet) const noexcept {
  const std::uint16_t header =
      reinterpret_cast<const std::atomic<std::uint16_t>*>(packet)->load(std::memory_order_acquire);
  const unsigned type = (header >> HSA_PACKET_HEADER_TYPE) & ((1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
  return type == HSA_PACKET_TYPE_KERNEL_DISPATCH && (header >> HSA_PACKET_HEADER_BARRIER & 1) == 0;
}

void AqlQueue::notice(const std::string& text) noexcept {
  report("queue " + std::to_string(description_.id) + " of " + device_.architecture->processor + ": " + text);
}

bool AqlQueue::signal_value(std::uint64_t signal, std::int64_t* value) noexcept {
  auto* word = word_at<std::int64_t>(device_.memory, signal + offsetof(amd_signal_t, value), permission_read);
  if (word == nullptr) {
    raise_memory_fault(signal, false, false);
    return false;
  }
  *value = word->load(std::memory_order_acquire);
  return true;
}

AqlQueue::Step AqlQueue::process(std::uint64_t address, std::byte* packet, std::uint64_t index) noexcept {
  const std::uint16_t header = reinterpret_cast<std::atomic<std::uint16_t>*>(packet)->load(std::memory_order_acquire);
  const unsigned type = (header >> HSA_PACKET_HEADER_TYPE) & ((1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
  Step step = Step::next;
  switch (type) {
    case HSA_PACKET_TYPE_INVALID:
      return Step::wait;  // reserved, not yet written
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return start(address, packet, index);
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR: {
      hsa_barrier_and_packet_t barrier;
      std::memcpy(&barrier, packet, sizeof barrier);
      bool any = false, all = true, none_given = true;
      for (const hsa_signal_t signal : barrier.dep_signal) {
        if (signal.handle == 0) continue;
        none_given = false;
        std::int64_t value = 0;
        if (!signal_value(signal.handle, &value)) return Step::stopped;
        any |= value == 0;
        all &= value == 0;
      }
      if (!none_given && !(type == HSA_PACKET_TYPE_BARRIER_AND ? all : any)) step = Step::wait;
      break;
    }
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      step = process_vendor(packet);
      break;
    default:
      return refuse(abi::QueueException::packet_unsupported,
                    "packet type " + std::to_string(type) + " is not supported");
  }
  if (step != Step::next) return step;
  const std::uint64_t now = gpu_ticks();
  retire(packet, index, now, now);
  return stopped_ ? Step::stopped : Step::next;
}

AqlQueue::Step AqlQueue::process_vendor(std::byte* packet) noexcept {
  const unsigned format = std::to_integer<unsigned>(packet[offsetof(hsa_amd_vendor_packet_header_t, AmdFormat)]);
  if (format == vendor_pm4_ib) {
    std::string problem;
    if (InstructionSet* instructions = device_.instructions(&problem)) instructions->invalidate_code(0, 0);
    return Step::next;
  }
  if (format != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
    return refuse(abi::QueueException::packet_vendor_unsupported,
                  "vendor packet format " + std::to_string(format) + " is not supported");
  }
  hsa_amd_barrier_value_packet_t barrier;
  std::memcpy(&barrier, packet, sizeof barrier);
  if (barrier.signal.handle == 0) return Step::next;
  std::int64_t value = 0;
  if (!signal_value(barrier.signal.handle, &value)) return Step::stopped;
  return satisfied(barrier.cond, value & barrier.mask, barrier.value) ? Step::next : Step::wait;
}

AqlQueue::Step AqlQueue::start(std::uint64_t address, const std::byte* packet, std::uint64_t index) noexcept {
  auto running = std::make_shared<Running>();
  DispatchRequest& request = running->request;
  std::memcpy(&request.packet, packet, sizeof request.packet);
  const hsa_kernel_dispatch_packet_t& dispatch = request.packet;

  const std::uint64_t work_items =
      std::uint64_t{dispatch.workgroup_size_x} * dispatch.workgroup_size_y * dispatch.workgroup_size_z;
  if (dispatch.grid_size_x == 0 || dispatch.grid_size_y == 0 || dispatch.grid_size_z == 0) {
    return refuse(abi::QueueException::packet_dimension_invalid, "a grid dimension is 0");
  }
  if (work_items == 0 || work_items > most_work_items) {
    return refuse(abi::QueueException::packet_workgroup_size_invalid,
                  "the workgroup has " + std::to_string(work_items) + " work-items; 1 to 1024 are possible");
  }
  if (dispatch.group_segment_size > lds_bytes) {
    return refuse(abi::QueueException::packet_group_segment_invalid,
                  "the kernel wants " + std::to_string(dispatch.group_segment_size) + " bytes of LDS; there are 65536");
  }
  if (device_.memory.translate(dispatch.kernel_object, permission_read) == nullptr) {
    return refuse(abi::QueueException::packet_code_invalid, "the kernel object is not in GPU memory");
  }
  std::string problem;
  InstructionSet* instructions = device_.instructions(&problem);
  if (instructions == nullptr) return refuse(abi::QueueException::packet_code_invalid, problem);

  request.packet_address = address;
  request.queue_address = description_.read_pointer - offsetof(amd_queue_t, read_dispatch_id);
  request.dispatch_id = index;
  request.memory = &device_.memory;
  request.host = this;
  request.seed = controls().seed;
  request.patience = options_.patience;
  request.poison = controls().poison;
  request.count_details = options_.counters;
  if (options_.before_kernel) options_.before_kernel();
  running->start = gpu_ticks();
  running->dispatch = instructions->start(request);
  running_.push_back(std::move(running));
  return Step::running;
}

AqlQueue::Step AqlQueue::refuse(abi::QueueException exception, const std::string& why) noexcept {
  report("queue " + std::to_string(description_.id) + " of " + device_.architecture->processor + " stops: " + why);
  raise(exception);
  return Step::stopped;
}

// Frees the slot first and completes last, because the owner may tear everything down when the signal fires.
void AqlQueue::retire(std::byte* packet, std::uint64_t index, std::uint64_t start, std::uint64_t end) noexcept {
  const std::uint64_t signal = completion_signal_of(packet);
  reinterpret_cast<std::atomic<std::uint16_t>*>(packet)->store(HSA_PACKET_TYPE_INVALID, std::memory_order_release);
  if (auto* read_index = word_at<std::uint64_t>(device_.memory, description_.read_pointer, read_write)) {
    read_index->store(index + 1, std::memory_order_release);
  }
  complete_signal(signal, start, end);
}

void AqlQueue::finish(Running& running, DispatchStatus status) noexcept {
  std::uint64_t end = gpu_ticks();
  if (controls().counter_clock) {
    end = running.start + counted_nanoseconds(running.dispatch->counters()) / (1'000'000'000 / gpu_clock_hertz);
    // Time stamps must not lie in the future: who sees the signal may look at the clock.
    while (gpu_ticks() < end) {
      const timespec moment{0, 20'000};
      ::nanosleep(&moment, nullptr);
    }
  }
  if (options_.counters) print_counters(running, end);
  if (status != DispatchStatus::done) {
    const DispatchError error = running.dispatch->error();
    report(error.message.empty() ? std::string("a kernel stopped without saying why") : error.message);
    if (status == DispatchStatus::memory_fault) {
      raise_memory_fault(error.address, error.write, error.present);
      raise(abi::QueueException::wave_memory_violation);
    } else {
      raise(exception_of(status));
    }
    return;
  }
  // Slots are freed in order, and before the signal where possible, because the owner may tear everything down when it
  // fires.
  while (!running_.empty() && running_.front()->ended) {
    const DispatchRequest& request = running_.front()->request;
    if (!free_slot(request.packet_address, request.dispatch_id)) return;
    running_.pop_front();
  }
  complete_signal(running.request.packet.completion_signal.handle, running.start, end);
}

bool AqlQueue::free_slot(std::uint64_t address, std::uint64_t index) noexcept {
  std::byte* packet = device_.memory.translate_range(address, packet_size, read_write);
  if (packet == nullptr) {
    raise_memory_fault(address, true, false);
    return false;
  }
  reinterpret_cast<std::atomic<std::uint16_t>*>(packet)->store(HSA_PACKET_TYPE_INVALID, std::memory_order_release);
  if (auto* read_index = word_at<std::uint64_t>(device_.memory, description_.read_pointer, read_write)) {
    read_index->store(index + 1, std::memory_order_release);
  }
  return true;
}

void AqlQueue::print_counters(const Running& running, std::uint64_t end) noexcept {
  const DispatchCounters counters = running.dispatch->counters();
  char line[1536];
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  int length = std::snprintf(
      line, sizeof line,
      "{\"kernel_object\":\"0x%llx\",\"queue\":%u,\"dispatch\":%llu,\"nanoseconds\":%llu,\"workgroups\":%llu,"
      "\"waves\":%llu,\"wave_instructions\":%llu",
      number(running.request.packet.kernel_object), description_.id, number(running.request.dispatch_id),
      number((end - running.start) * (1'000'000'000 / gpu_clock_hertz)), number(counters.workgroups),
      number(counters.waves), number(counters.wave_instructions));
  const auto add = [&](const char* name, std::uint64_t value) {
    if (length > 0 && static_cast<std::size_t>(length) < sizeof line)
      length += std::snprintf(line + length, sizeof line - static_cast<std::size_t>(length), ",\"%s\":%llu", name,
                              number(value));
  };
  add("valu", counters.valu);
  add("matrix", counters.matrix);
  add("salu", counters.salu);
  add("vmem", counters.vmem);
  add("smem", counters.smem);
  add("lds", counters.lds);
  add("branches", counters.branches);
  add("partial_valu", counters.partial_valu);
  add("inactive_lanes", counters.inactive_lanes);
  add("bytes_read", counters.bytes_read);
  add("bytes_written", counters.bytes_written);
  constexpr std::array<std::array<const char*, 2>, traffic_kinds> kinds{{{"global_read", "global_written"},
                                                                         {"private_read", "private_written"},
                                                                         {"lds_read", "lds_written"},
                                                                         {"scalar_read", "scalar_written"}}};
  for (std::size_t k = 0; k < traffic_kinds; ++k) {
    add(kinds[k][0], counters.memory[k].bytes_read);
    add(kinds[k][1], counters.memory[k].bytes_written);
  }
  add("lds_bank_conflicts", counters.lds_bank_conflicts);
  if (static_cast<std::size_t>(length) + 1 < sizeof line) std::strcat(line, "}");
  report(line);
}

}  // namespace kerncap::softgpu
