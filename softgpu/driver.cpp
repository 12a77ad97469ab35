#include "softgpu/driver.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "softgpu/control.h"
#include "softgpu/kfd_abi.h"
#include "softgpu/report.h"
#include "softgpu/system_calls.h"
#include "softgpu/topology.h"

namespace kerncap::softgpu {
namespace {

std::atomic<Driver*> the_driver{nullptr};
std::atomic<bool> problem_told{false};

}  // namespace

Driver::Driver(Configuration wanted)
    : configuration(std::move(wanted)),
      tree(build_topology(configuration)),
      usage(configuration.machine),
      engine(configuration.threads),
      allocations([this] { engine.quiesce(); }) {
  for (unsigned index = 0; index < configuration.devices.size(); ++index) {
    auto device = std::make_unique<Device>();
    device->index = index;
    device->gpu_id = gpu_id_of(index);
    device->render_minor = first_render_minor + index;
    device->architecture = configuration.devices[index];
    device->vram = configuration.vram;
    device->usage = &usage;
    devices.push_back(std::move(device));
  }
}

Driver* Driver::get() {
  Driver* known = the_driver.load(std::memory_order_acquire);
  if (known == nullptr) {
    Configuration configuration = read_configuration([](const char* name) -> const char* { return std::getenv(name); });
    controls().counter_clock = configuration.counter_clock;
    controls().seed = configuration.seed;
    controls().poison = configuration.poison;
    if (!configuration.problem.empty() && !problem_told.exchange(true)) report(configuration.problem);
    auto* made = new Driver(std::move(configuration));
    if (the_driver.compare_exchange_strong(known, made)) {
      known = made;
    } else {
      delete made;  // another thread was first; nothing has started yet in ours
    }
  }
  return known->devices.empty() ? nullptr : known;
}

Driver* Driver::existing() noexcept { return the_driver.load(std::memory_order_acquire); }

void Driver::forget_after_fork() noexcept { the_driver.store(nullptr); }

Device* Driver::device_of(std::uint32_t gpu_id) const {
  for (const auto& device : devices) {
    if (device->gpu_id == gpu_id) return device.get();
  }
  return nullptr;
}

Device* Driver::device_of_minor(unsigned minor) const {
  const unsigned index = minor >= first_render_minor ? minor - first_render_minor : minor;
  return index < devices.size() ? devices[index].get() : nullptr;
}

void* Driver::map_kfd(void* address, std::size_t size, int protection, int flags, std::uint64_t offset) {
  const std::uint64_t type = offset >> abi::mmap_type_shift;
  const auto gpu_id = static_cast<std::uint32_t>(offset >> abi::mmap_gpu_id_shift & 0xffff);
  if (type == abi::mmap_type_doorbell) {
    Device* device = device_of(gpu_id);
    const auto page = device == nullptr ? nullptr : device->doorbell_page();
    if (page != nullptr && size <= page->size())
      return raw::map(address, size, protection, flags, page->descriptor(), 0);
  } else if (type == abi::mmap_type_mmio) {
    // The host-data-path flush registers: writes go nowhere.
    return raw::map(address, size, protection, (flags & ~MAP_SHARED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  errno = EINVAL;
  return MAP_FAILED;
}

void* Driver::map_drm(void* address, std::size_t size, int protection, int flags, std::uint64_t offset) {
  std::uint64_t inside = 0;
  const auto buffer = allocations.buffer_at(offset, &inside);
  if (buffer == nullptr || inside > buffer->size() ||
      size > ((buffer->size() - inside + 4095) & ~std::uint64_t{4095})) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if (protection == PROT_NONE) {
    return raw::map(address, size, PROT_NONE, (flags & MAP_FIXED) | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  constexpr std::uint32_t visible = KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
  if ((buffer->flags() & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 && (buffer->flags() & visible) == 0) {
    errno = EPERM;  // as the driver for memory that was made without CPU access
    return MAP_FAILED;
  }
  return raw::map(address, size, protection, flags, buffer->descriptor(), inside);
}

}  // namespace kerncap::softgpu
