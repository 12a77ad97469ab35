#include "softgpu/events.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace kerncap::softgpu {
namespace {

constexpr std::uint32_t for_ever = 0xffffffff;

class EventsTest : public ::testing::Test {
 protected:
  std::uint32_t make(std::uint32_t type = KFD_IOC_EVENT_SIGNAL, bool auto_reset = false) {
    std::uint32_t id = 0, slot = 0;
    EXPECT_TRUE(events.create(type, auto_reset, &id, &slot));
    return id;
  }
  int wait(std::uint32_t id, std::uint32_t milliseconds) {
    abi::EventData data{};
    data.event_id = id;
    return events.wait({&data, 1}, false, milliseconds);
  }
  Events events;
};

TEST_F(EventsTest, AManualEventStaysSignalledUntilItIsReset) {
  const std::uint32_t id = make();
  EXPECT_EQ(wait(id, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
  EXPECT_TRUE(events.set(id));
  EXPECT_EQ(wait(id, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_EQ(wait(id, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_TRUE(events.reset(id));
  EXPECT_EQ(wait(id, 5), KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_F(EventsTest, AnAutomaticEventIsTakenByOneWaiter) {
  const std::uint32_t id = make(KFD_IOC_EVENT_SIGNAL, true);
  events.set(id);
  EXPECT_EQ(wait(id, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_EQ(wait(id, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_F(EventsTest, SettingWakesASleeper) {
  const std::uint32_t id = make(KFD_IOC_EVENT_SIGNAL, true);
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    events.set(id);
  });
  EXPECT_EQ(wait(id, for_ever), KFD_IOC_WAIT_RESULT_COMPLETE);
  setter.join();
}

TEST_F(EventsTest, WaitingForAllNeedsEachOfThem) {
  const std::uint32_t first = make(KFD_IOC_EVENT_SIGNAL, true), second = make(KFD_IOC_EVENT_SIGNAL, true);
  std::array<abi::EventData, 2> both{};
  both[0].event_id = first;
  both[1].event_id = second;
  events.set(first);
  EXPECT_EQ(events.wait(both, true, 5), KFD_IOC_WAIT_RESULT_TIMEOUT);
  events.set(first);
  events.set(second);
  EXPECT_EQ(events.wait(both, true, 5), KFD_IOC_WAIT_RESULT_COMPLETE);
}

TEST_F(EventsTest, AWaiterWithAnOldAgeDoesNotMissASignal) {
  const std::uint32_t id = make(KFD_IOC_EVENT_SIGNAL, true);
  events.set(id);
  EXPECT_EQ(wait(id, 0), KFD_IOC_WAIT_RESULT_COMPLETE);  // somebody else took it
  abi::EventData data{};
  data.event_id = id;
  data.last_event_age = 1;
  EXPECT_EQ(events.wait({&data, 1}, false, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_EQ(data.last_event_age, 2u);
  EXPECT_EQ(events.wait({&data, 1}, false, 0), KFD_IOC_WAIT_RESULT_TIMEOUT) << "now it has the current age";
}

TEST_F(EventsTest, AMemoryFaultReachesMemoryEventsWithItsData) {
  const std::uint32_t id = make(KFD_IOC_EVENT_MEMORY), other = make();
  kfd_hsa_memory_exception_data fault{};
  fault.va = 0x1234000;
  fault.gpu_id = 7;
  fault.failure.NotPresent = 1;
  events.memory_fault(fault);
  abi::EventData data{};
  data.event_id = id;
  ASSERT_EQ(events.wait({&data, 1}, false, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
  EXPECT_EQ(data.memory.va, 0x1234000u);
  EXPECT_EQ(data.memory.gpu_id, 7u);
  EXPECT_EQ(data.memory.failure.NotPresent, 1u);
  EXPECT_EQ(wait(other, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
}

TEST_F(EventsTest, UnknownAndDestroyedEventsAreRefused) {
  const std::uint32_t id = make();
  EXPECT_TRUE(events.destroy(id));
  EXPECT_FALSE(events.destroy(id));
  EXPECT_FALSE(events.set(id));
  EXPECT_EQ(wait(id, 0), -1);
}

TEST_F(EventsTest, SignalEventsRunOutAtTheDriversLimit) {
  std::uint32_t id = 0, slot = 0;
  unsigned made = 0;
  while (events.create(KFD_IOC_EVENT_SIGNAL, false, &id, &slot)) {
    ASSERT_LT(slot, static_cast<std::uint32_t>(KFD_SIGNAL_EVENT_LIMIT));
    ++made;
  }
  EXPECT_EQ(made, KFD_SIGNAL_EVENT_LIMIT - 1u);
  EXPECT_TRUE(events.create(KFD_IOC_EVENT_MEMORY, false, &id, &slot)) << "other kinds have no slot";
}

}  // namespace
}  // namespace kerncap::softgpu
