// The packet processors, with GPU memory made by hand and an executor that only counts.
#include <gtest/gtest.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "softgpu/aql_queue.h"
#include "softgpu/control.h"
#include "softgpu/counter_clock.h"
#include "softgpu/engine.h"
#include "softgpu/sdma_queue.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t gpu_base = 0x500000000000;  // where the test's memory appears to the GPU
constexpr std::uint64_t memory_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t packets = 16;

// A kernel that needs `turns` turns and ends with `outcome`.
struct Script {
  unsigned turns = 1;
  DispatchStatus outcome = DispatchStatus::done;
  std::uint64_t fault_address = 0;
};

class FakeDispatch : public Dispatch {
 public:
  FakeDispatch(const Script& script, std::function<void()> finished)
      : script_(script), left_(static_cast<int>(script.turns)), finished_(std::move(finished)) {}
  DispatchStatus advance(std::uint64_t) noexcept override {
    const int left = left_.fetch_sub(1);
    if (left > 1) return DispatchStatus::running;
    if (left == 1) finished_();
    return script_.outcome;
  }
  DispatchError error() const override {
    DispatchError error;
    error.status = script_.outcome;
    error.address = script_.fault_address;
    error.message = "the script says so";
    return error;
  }
  DispatchCounters counters() const override { return {}; }

 private:
  Script script_;
  std::atomic<int> left_;
  std::function<void()> finished_;
};

class FakeInstructions : public InstructionSet {
 public:
  std::unique_ptr<Dispatch> start(const DispatchRequest& request) override {
    requests.push_back(request);
    return std::make_unique<FakeDispatch>(script, [this] { ++finished; });
  }
  void invalidate_code(std::uint64_t, std::uint64_t) override { ++invalidations; }
  Script script;
  std::vector<DispatchRequest> requests;
  std::atomic<unsigned> finished{0};
  unsigned invalidations = 0;
};

struct alignas(4096) Memory {
  std::byte bytes[memory_bytes];
};

class QueueTest : public ::testing::Test {
 protected:
  ~QueueTest() override {
    const Control usual;
    set_controls(&usual);
  }
  QueueTest() {
    device.gpu_id = 9;
    device.architecture = find_architecture("gfx90a");
    device.vram = std::uint64_t{1} << 30;
    device.memory.map(gpu_base, memory_bytes, memory->bytes, permission_read | permission_write | permission_execute);
    auto made = std::make_unique<FakeInstructions>();
    instructions = made.get();
    device.set_instructions(std::move(made));
    description.id = 3;
    description.ring_address = gpu_base;
    description.ring_size = packets * 64;
    description.read_pointer = gpu_base + 0x1000 + offsetof(amd_queue_t, read_dispatch_id);
    description.write_pointer = gpu_base + 0x1000 + offsetof(amd_queue_t, write_dispatch_id);
    description.save_area = reinterpret_cast<std::uint64_t>(&save_area);
    description.doorbell_slot = device.take_doorbell();
    std::uint32_t slot = 0;
    events.create(KFD_IOC_EVENT_SIGNAL, true, &queue_event, &slot);
    events.create(KFD_IOC_EVENT_MEMORY, false, &memory_event, &slot);
    save_area.error_payload = reinterpret_cast<std::uint64_t>(&exceptions);
    save_area.error_event = queue_event;
    for (std::uint64_t index = 0; index < packets; ++index) packet(index)[0] = std::byte{HSA_PACKET_TYPE_INVALID};
  }

  template <typename Type = std::byte>
  Type* host(std::uint64_t offset) {
    return reinterpret_cast<Type*>(memory->bytes + offset);
  }
  amd_queue_t& amd_queue() { return *host<amd_queue_t>(0x1000); }
  amd_signal_t& signal(unsigned number) { return *host<amd_signal_t>(0x2000 + number * sizeof(amd_signal_t)); }
  std::uint64_t signal_address(unsigned number) { return gpu_base + 0x2000 + number * sizeof(amd_signal_t); }
  std::byte* packet(std::uint64_t index) { return memory->bytes + index % packets * 64; }

  template <typename Packet>
  std::uint64_t submit(Packet content, std::uint16_t type, bool ring = true) {
    const std::uint64_t index = amd_queue().write_dispatch_id;
    amd_queue().write_dispatch_id = index + 1;
    content.header = type;
    std::memcpy(packet(index), &content, 64);
    if (ring) ring_doorbell(index);
    return index;
  }
  void ring_doorbell(std::uint64_t value) { ring(description.doorbell_slot, value); }
  void ring(int slot, std::uint64_t value) {
    reinterpret_cast<std::atomic<std::uint64_t>*>(device.doorbells->alias())[slot].store(value,
                                                                                         std::memory_order_release);
  }
  hsa_kernel_dispatch_packet_t kernel() {
    hsa_kernel_dispatch_packet_t dispatch{};
    dispatch.setup = 1;
    dispatch.workgroup_size_x = dispatch.grid_size_x = 64;
    dispatch.workgroup_size_y = dispatch.workgroup_size_z = dispatch.grid_size_y = dispatch.grid_size_z = 1;
    dispatch.kernel_object = gpu_base + 0x8000;
    return dispatch;
  }
  void run(Queue& queue, unsigned turns = 20) {
    while (turns-- != 0) queue.advance(1000);
  }
  bool told(std::uint32_t event) {
    abi::EventData data{};
    data.event_id = event;
    return events.wait({&data, 1}, false, 0) == KFD_IOC_WAIT_RESULT_COMPLETE;
  }

  std::unique_ptr<Memory> memory = std::make_unique<Memory>();
  Device device;
  Events events;
  FakeInstructions* instructions = nullptr;
  QueueDescription description;
  abi::SaveAreaHeader save_area{};
  std::uint64_t exceptions = 0;
  std::uint32_t queue_event = 0, memory_event = 0;
};

// The fake's counters are zero: what is left is the launch itself.
TEST_F(QueueTest, TheCounterClockSaysTheSameEachTime) {
  Control wanted;
  wanted.counter_clock = 1;
  ASSERT_EQ(set_controls(&wanted), 0);
  AqlQueue queue(device, events, description, {});
  for (unsigned i = 0; i < 3; ++i) {
    auto dispatch = kernel();
    dispatch.completion_signal.handle = signal_address(i);
    submit(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH);
    run(queue);
    EXPECT_EQ(signal(i).end_ts - signal(i).start_ts, counted_nanoseconds({}) / 10) << i;
    EXPECT_LE(signal(i).end_ts, gpu_ticks());
  }
}

TEST(CounterClock, MoreInstructionsTakeMoreTime) {
  DispatchCounters counters;
  counters.valu = 1'000'000;
  const std::uint64_t before = counted_nanoseconds(counters);
  counters.valu += 30'000;
  EXPECT_NEAR(static_cast<double>(counted_nanoseconds(counters)) / static_cast<double>(before), 1.03, 0.001);
}

TEST(Controls, AStructureOfAnotherSizeIsRefused) {
  Control wanted;
  wanted.size = 8;
  EXPECT_EQ(set_controls(&wanted), -1);
  EXPECT_EQ(set_controls(nullptr), -1);
}

TEST_F(QueueTest, NothingHappensBeforeTheDoorbellRings) {
  AqlQueue queue(device, events, description, {});
  const std::uint64_t index = submit(kernel(), HSA_PACKET_TYPE_KERNEL_DISPATCH, false);
  run(queue);
  EXPECT_TRUE(instructions->requests.empty());
  ring_doorbell(index);
  run(queue);
  EXPECT_EQ(instructions->requests.size(), 1u);
}

TEST_F(QueueTest, AKernelGetsItsPacketAndCompletesItsSignal) {
  Control wanted;
  wanted.seed = 5;
  wanted.poison = 6;
  ASSERT_EQ(set_controls(&wanted), 0);
  AqlQueue queue(device, events, description, {});
  std::uint32_t event = 0, slot = 0;
  events.create(KFD_IOC_EVENT_SIGNAL, true, &event, &slot);
  signal(0).value = 1;
  signal(0).event_mailbox_ptr = gpu_base + 0x3000;
  signal(0).event_id = event;
  auto dispatch = kernel();
  dispatch.completion_signal.handle = signal_address(0);
  instructions->script.turns = 3;
  submit(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH);
  queue.advance(1000);
  EXPECT_EQ(signal(0).value, 1) << "still running";
  EXPECT_EQ(amd_queue().read_dispatch_id, 0u);
  run(queue);
  EXPECT_EQ(signal(0).value, 0);
  EXPECT_EQ(*host<std::uint64_t>(0x3000), event);
  EXPECT_TRUE(told(event));
  EXPECT_GE(signal(0).end_ts, signal(0).start_ts);
  EXPECT_NE(signal(0).start_ts, 0u);
  EXPECT_EQ(amd_queue().read_dispatch_id, 1u);
  EXPECT_EQ(std::to_integer<int>(packet(0)[0]), HSA_PACKET_TYPE_INVALID);
  const DispatchRequest& request = instructions->requests.at(0);
  EXPECT_EQ(request.packet_address, gpu_base);
  EXPECT_EQ(request.queue_address, gpu_base + 0x1000);
  EXPECT_EQ(request.seed, 5u);
  EXPECT_EQ(request.poison, 6u);
  EXPECT_EQ(request.packet.kernel_object, gpu_base + 0x8000);
}

TEST_F(QueueTest, PacketsRunInOrderAroundTheRing) {
  AqlQueue queue(device, events, description, {});
  for (std::uint64_t round = 0; round < 3 * packets; ++round) {
    submit(kernel(), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    run(queue, 3);
  }
  ASSERT_EQ(instructions->requests.size(), 3 * packets);
  for (std::uint64_t round = 0; round < 3 * packets; ++round) {
    EXPECT_EQ(instructions->requests[round].dispatch_id, round);
    EXPECT_EQ(instructions->requests[round].packet_address, gpu_base + round % packets * 64);
  }
}

TEST_F(QueueTest, AReservedSlotIsWaitedFor) {
  AqlQueue queue(device, events, description, {});
  amd_queue().write_dispatch_id = 1;  // somebody has reserved 0 and not yet written it
  submit(kernel(), HSA_PACKET_TYPE_KERNEL_DISPATCH);
  EXPECT_EQ(queue.advance(1000), Progress::waiting);
  EXPECT_TRUE(instructions->requests.empty());
  auto late = kernel();
  late.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
  std::memcpy(packet(0), &late, 64);
  run(queue);
  EXPECT_EQ(instructions->requests.size(), 2u);
}

TEST_F(QueueTest, BarriersWaitForTheirSignals) {
  AqlQueue queue(device, events, description, {});
  signal(0).value = 1;
  signal(1).value = 1;
  hsa_barrier_and_packet_t barrier{};
  barrier.dep_signal[0].handle = signal_address(0);
  barrier.dep_signal[4].handle = signal_address(1);
  submit(barrier, HSA_PACKET_TYPE_BARRIER_AND);
  submit(barrier, HSA_PACKET_TYPE_BARRIER_OR);
  EXPECT_EQ(queue.advance(1000), Progress::waiting);
  signal(0).value = 0;
  EXPECT_EQ(queue.advance(1000), Progress::waiting) << "one is not all";
  signal(1).value = 0;
  run(queue, 1);
  EXPECT_EQ(amd_queue().read_dispatch_id, 2u);

  signal(0).value = 1;
  submit(barrier, HSA_PACKET_TYPE_BARRIER_OR);
  run(queue, 1);
  EXPECT_EQ(amd_queue().read_dispatch_id, 3u) << "any is enough";
  submit(hsa_barrier_and_packet_t{}, HSA_PACKET_TYPE_BARRIER_AND);
  submit(hsa_barrier_and_packet_t{}, HSA_PACKET_TYPE_BARRIER_OR);
  run(queue, 1);
  EXPECT_EQ(amd_queue().read_dispatch_id, 5u) << "no signal given: nothing to wait for";
}

TEST_F(QueueTest, VendorPacketsCompareValuesAndInvalidateCode) {
  AqlQueue queue(device, events, description, {});
  hsa_amd_barrier_value_packet_t barrier{};
  struct Raw {
    std::uint16_t header;
    std::byte rest[62];
  } raw{};
  const auto send = [&](std::uint8_t format) {
    barrier.header.AmdFormat = format;
    std::memcpy(&raw, &barrier, 64);
    submit(raw, HSA_PACKET_TYPE_VENDOR_SPECIFIC);
  };
  barrier.signal.handle = signal_address(0);
  barrier.mask = 0xff;
  barrier.value = 0x42;
  barrier.cond = HSA_SIGNAL_CONDITION_EQ;
  signal(0).value = 0x141;
  send(HSA_AMD_PACKET_TYPE_BARRIER_VALUE);
  EXPECT_EQ(queue.advance(1000), Progress::waiting);
  signal(0).value = 0x142;
  run(queue, 1);
  EXPECT_EQ(amd_queue().read_dispatch_id, 1u);
  barrier.signal.handle = 0;
  send(HSA_AMD_PACKET_TYPE_BARRIER_VALUE);
  send(1);  // a PM4 indirect buffer
  run(queue, 1);
  EXPECT_EQ(amd_queue().read_dispatch_id, 3u);
  EXPECT_EQ(instructions->invalidations, 1u);
  send(77);
  run(queue, 1);
  EXPECT_EQ(exceptions, std::uint64_t{1} << 22) << "vendor packet unsupported";
}

TEST_F(QueueTest, BadPacketsStopTheQueueWithTheDriversExceptions) {
  const auto exception_for = [&](const hsa_kernel_dispatch_packet_t& dispatch, std::uint16_t type) {
    exceptions = 0;
    AqlQueue queue(device, events, description, {});
    submit(dispatch, type);
    run(queue, 3);
    const std::uint64_t index = amd_queue().write_dispatch_id;
    amd_queue().read_dispatch_id = index;
    EXPECT_TRUE(told(queue_event));
    return exceptions;
  };
  auto dispatch = kernel();
  dispatch.grid_size_y = 0;
  EXPECT_EQ(exception_for(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH), std::uint64_t{1} << 15);
  dispatch = kernel();
  dispatch.workgroup_size_x = 1025;
  EXPECT_EQ(exception_for(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH), std::uint64_t{1} << 20);
  dispatch = kernel();
  dispatch.group_segment_size = 65537;
  EXPECT_EQ(exception_for(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH), std::uint64_t{1} << 16);
  dispatch = kernel();
  dispatch.kernel_object = 0;
  EXPECT_EQ(exception_for(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH), std::uint64_t{1} << 17);
  EXPECT_EQ(exception_for(kernel(), HSA_PACKET_TYPE_AGENT_DISPATCH), std::uint64_t{1} << 19);
  instructions->script.outcome = DispatchStatus::illegal_instruction;
  EXPECT_EQ(exception_for(kernel(), HSA_PACKET_TYPE_KERNEL_DISPATCH), std::uint64_t{1} << 3);
}

TEST_F(QueueTest, AFaultingKernelSignalsTheMemoryEventAndNotItsCompletion) {
  AqlQueue queue(device, events, description, {});
  instructions->script = {.turns = 1, .outcome = DispatchStatus::memory_fault, .fault_address = 0xdeadbeef123};
  signal(0).value = 1;
  auto dispatch = kernel();
  dispatch.completion_signal.handle = signal_address(0);
  submit(dispatch, HSA_PACKET_TYPE_KERNEL_DISPATCH);
  submit(kernel(), HSA_PACKET_TYPE_KERNEL_DISPATCH | 1u << HSA_PACKET_HEADER_BARRIER);
  run(queue);
  abi::EventData data{};
  data.event_id = memory_event;
  ASSERT_EQ(events.wait({&data, 1}, false, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_EQ(data.memory.va, 0xdeadbeef000u) << "pages, as the hardware reports them";
  EXPECT_EQ(data.memory.gpu_id, 9u);
  EXPECT_EQ(data.memory.failure.NotPresent, 1u);
  EXPECT_EQ(signal(0).value, 1);
  EXPECT_EQ(instructions->requests.size(), 1u) << "the queue has stopped";
}

TEST_F(QueueTest, AKernelWithoutBarrierBitRunsBesideTheOneBeforeItAndOneWithItWaits) {
  constexpr std::uint16_t with_barrier = HSA_PACKET_TYPE_KERNEL_DISPATCH | 1u << HSA_PACKET_HEADER_BARRIER;
  AqlQueue queue(device, events, description, {});
  const auto submit_with_signal = [&](unsigned number, std::uint16_t type) {
    signal(number).value = 1;
    auto dispatch = kernel();
    dispatch.completion_signal.handle = signal_address(number);
    submit(dispatch, type);
  };
  instructions->script.turns = 100;
  submit_with_signal(0, HSA_PACKET_TYPE_KERNEL_DISPATCH);
  queue.advance(1000);
  instructions->script.turns = 1;
  submit_with_signal(1, HSA_PACKET_TYPE_KERNEL_DISPATCH);
  submit_with_signal(2, with_barrier);
  run(queue, 20);
  EXPECT_EQ(signal(0).value, 1) << "the first still runs";
  EXPECT_EQ(signal(1).value, 0) << "the second ran beside it";
  EXPECT_EQ(signal(2).value, 1) << "the third waits for both";
  EXPECT_EQ(instructions->requests.size(), 2u);
  EXPECT_EQ(amd_queue().read_dispatch_id, 0u) << "slots are freed in order";
  EXPECT_NE(packet(1)[0], std::byte{HSA_PACKET_TYPE_INVALID});
  run(queue, 200);
  EXPECT_EQ(signal(0).value, 0);
  EXPECT_EQ(signal(2).value, 0);
  EXPECT_EQ(amd_queue().read_dispatch_id, 3u);
}

TEST_F(QueueTest, NoMoreKernelsThanTheRingHoldsRunBesideEachOther) {
  AqlQueue queue(device, events, description, {});
  instructions->script.turns = 1000;
  for (std::uint64_t index = 0; index < packets; ++index) submit(kernel(), HSA_PACKET_TYPE_KERNEL_DISPATCH);
  run(queue, 40);
  EXPECT_EQ(instructions->requests.size(), packets);
  EXPECT_EQ(amd_queue().read_dispatch_id, 0u);
}

TEST_F(QueueTest, ASignalOutsideGpuMemoryIsAFaultAndNotACrash) {
  AqlQueue queue(device, events, description, {});
  hsa_barrier_and_packet_t barrier{};
  barrier.completion_signal.handle = 0x123456789;
  submit(barrier, HSA_PACKET_TYPE_BARRIER_AND);
  run(queue);
  EXPECT_TRUE(told(memory_event));
}

// ---- The copy engine

class SdmaTest : public QueueTest {
 protected:
  SdmaTest() {
    description.ring_size = 4096;
    description.read_pointer = gpu_base + 0x4000;
    description.write_pointer = gpu_base + 0x4008;
  }
  void send(std::initializer_list<std::uint32_t> words) {
    std::uint64_t& write = *host<std::uint64_t>(0x4008);
    for (const std::uint32_t word : words) {
      std::memcpy(memory->bytes + write % description.ring_size, &word, 4);
      write += 4;
    }
    ring_doorbell(write);
  }
  static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
  std::uint64_t read_index() { return *host<std::uint64_t>(0x4000); }
  static constexpr std::uint64_t source = gpu_base + 0x10000, target = gpu_base + 0x20000;
};

TEST_F(SdmaTest, CopiesLines) {
  SdmaQueue queue(device, events, description);
  for (unsigned index = 0; index < 5000; ++index) memory->bytes[0x10000 + index] = static_cast<std::byte>(index * 7);
  send({1, 4999, 0, low(source), high(source), low(target + 3), high(target + 3)});
  run(queue, 1);
  EXPECT_EQ(std::memcmp(memory->bytes + 0x20003, memory->bytes + 0x10000, 5000), 0);
  EXPECT_EQ(memory->bytes[0x20003 + 5000], std::byte{0});
  EXPECT_EQ(read_index(), 28u);
}

TEST_F(SdmaTest, CopiesBoxesBetweenPitchedImages) {
  SdmaQueue queue(device, events, description);
  auto* from = host<std::uint32_t>(0x10000);
  for (unsigned index = 0; index < 4096; ++index) from[index] = index;
  // 3 x 2 x 2 elements of 4 bytes, from (1, 2, 1) in a 16-wide image with 128-element slices to the corner of an 8-wide
  // one.
  send({1u | 4u << 8 | 2u << 29, low(source), high(source), 1u | 2u << 16, 1u | 15u << 13, 127, low(target),
        high(target), 0, 7u << 13, 31, 2u | 1u << 16, 1});
  run(queue, 1);
  const auto* to = host<std::uint32_t>(0x20000);
  for (unsigned z = 0; z < 2; ++z) {
    for (unsigned y = 0; y < 2; ++y) {
      for (unsigned x = 0; x < 3; ++x) EXPECT_EQ(to[z * 32 + y * 8 + x], (z + 1) * 128 + (y + 2) * 16 + x + 1);
    }
  }
  EXPECT_EQ(to[3], 0u);
}

TEST_F(SdmaTest, FillsFencesAddsAndTraps) {
  SdmaQueue queue(device, events, description);
  std::uint32_t event = 0, slot = 0;
  events.create(KFD_IOC_EVENT_SIGNAL, true, &event, &slot);
  *host<std::uint64_t>(0x5000) = 7;
  send({11u | 2u << 30, low(target), high(target), 0xabcd1234, 5000 * 4 - 4});
  send({5, low(target + 0x8000), high(target), 99});
  send({10u | 47u << 25, low(gpu_base + 0x5000), high(gpu_base), 0xffffffff, 0xffffffff, 0, 0, 0});
  send({13u | 2u << 8, low(gpu_base + 0x5010), high(gpu_base)});
  send({6, event});
  run(queue, 1);
  EXPECT_EQ(host<std::uint32_t>(0x20000)[4999], 0xabcd1234);
  EXPECT_EQ(host<std::uint32_t>(0x20000)[5000], 0u);
  EXPECT_EQ(*host<std::uint32_t>(0x28000), 99u);
  EXPECT_EQ(*host<std::uint64_t>(0x5000), 6u);
  EXPECT_NE(*host<std::uint64_t>(0x5010), 0u);
  EXPECT_TRUE(told(event));
}

TEST_F(SdmaTest, PollsMemoryButNotRegisters) {
  SdmaQueue queue(device, events, description);
  const std::uint32_t equal = 3u << 28;
  send({8u | equal, 0, 0x80000000, 0, 0, 0});  // the host data path flush
  send({8u | equal | 1u << 31, low(gpu_base + 0x5000), high(gpu_base), 5, 0xff, 0xfff00004});
  EXPECT_EQ(queue.advance(0), Progress::some);
  EXPECT_EQ(queue.advance(0), Progress::waiting);
  EXPECT_EQ(read_index(), 24u);
  *host<std::uint32_t>(0x5000) = 0x305;
  run(queue, 1);
  EXPECT_EQ(read_index(), 48u);
}

TEST_F(SdmaTest, ACopyThatLeavesMappedMemoryFaults) {
  SdmaQueue queue(device, events, description);
  send({1, 8191, 0, low(gpu_base + memory_bytes - 4096), high(gpu_base), low(target), high(target)});
  run(queue, 1);
  abi::EventData data{};
  data.event_id = memory_event;
  ASSERT_EQ(events.wait({&data, 1}, false, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_EQ(data.memory.va, gpu_base + memory_bytes);
}

TEST_F(SdmaTest, UnknownAndOverlongPacketsStopTheQueue) {
  for (const std::uint32_t header : {0x33u, 0x1u | 9u << 8, 2u}) {
    *host<std::uint64_t>(0x4000) = *host<std::uint64_t>(0x4008) = 0;
    SdmaQueue queue(device, events, description);
    send({header, 0, 0, 0xfffff, 0});
    run(queue, 3);
    EXPECT_EQ(read_index(), 0u) << header;
  }
}

// ---- The engine

TEST_F(QueueTest, ABlockedQueueDoesNotHoldUpAnother) {
  // Engines never end, so what theirs threads see is left alive on purpose.
  auto* engine = new Engine(1);
  auto blocked = std::make_shared<AqlQueue>(device, events, description, AqlOptions{});
  signal(0).value = 1;
  hsa_barrier_and_packet_t barrier{};
  barrier.dep_signal[0].handle = signal_address(0);
  submit(barrier, HSA_PACKET_TYPE_BARRIER_AND);
  ASSERT_TRUE(engine->add(blocked));

  QueueDescription second = description;
  second.id = 4;
  second.ring_address = gpu_base + 0x6000;
  second.ring_size = 4096;
  second.read_pointer = gpu_base + 0x4000;
  second.write_pointer = gpu_base + 0x4008;
  second.doorbell_slot = device.take_doorbell();
  const std::uint32_t fence[] = {5, static_cast<std::uint32_t>(signal_address(0) + 8),
                                 static_cast<std::uint32_t>(gpu_base >> 32), 0};
  std::memcpy(memory->bytes + 0x6000, fence, sizeof fence);
  *host<std::uint64_t>(0x4008) = sizeof fence;
  ASSERT_TRUE(engine->add(std::make_shared<SdmaQueue>(device, events, second)));
  ring(second.doorbell_slot, sizeof fence);

  auto& read_index =
      reinterpret_cast<std::atomic<std::uint64_t>&>(const_cast<std::uint64_t&>(amd_queue().read_dispatch_id));
  for (unsigned tries = 0; tries < 2000 && read_index == 0; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(read_index, 1u) << "the second queue's fence released the first";
  EXPECT_TRUE(engine->remove(description.id));
  EXPECT_FALSE(engine->remove(description.id));
  EXPECT_TRUE(engine->remove(second.id));
  EXPECT_TRUE(engine->empty());
}

}  // namespace
}  // namespace kerncap::softgpu
