// The entry point of libkerncap-softgpu-isa.so.
#include <atomic>
#include <map>
#include <mutex>

#include "softgpu/isa/dispatch.h"

namespace kerncap::softgpu::isa {
namespace {

class AmdInstructionSet final : public InstructionSet {
 public:
  explicit AmdInstructionSet(Target target) : target_(std::move(target)) {}

  std::unique_ptr<Dispatch> start(const DispatchRequest& request) override {
    auto dispatch = std::make_unique<RunningDispatch>(request, target_, pool_, device_, active_);
    if (!dispatch->refused()) dispatch->set_code(code_for(*request.memory, dispatch->kernel().wave32));
    return dispatch;
  }

  void invalidate_code(std::uint64_t address, std::uint64_t size) override {
    const std::scoped_lock lock(mutex_);
    for (auto& entry : caches_) entry.second->invalidate(address, size);
  }

 private:
  // Decoded code is shared by the dispatches of an address space. Invalidated pages are kept while waves may be in
  // them.
  CodeCache* code_for(AddressSpace& memory, bool wave32) {
    const std::scoped_lock lock(mutex_);
    if (active_.load() == 1)  // the dispatch that asks, which has no wave yet
      for (auto& entry : caches_) entry.second->retire();
    auto& cache = caches_[{&memory, wave32}];
    if (cache == nullptr) cache = std::make_unique<CodeCache>(target_, memory, wave32);
    return cache.get();
  }

  const Target target_;
  Pool pool_;
  DeviceState device_;
  std::atomic<unsigned> active_{0};  // dispatches that exist
  std::mutex mutex_;
  std::map<std::pair<AddressSpace*, bool>, std::unique_ptr<CodeCache>> caches_;
};

}  // namespace
}  // namespace kerncap::softgpu::isa

extern "C" __attribute__((visibility("default"))) kerncap::softgpu::InstructionSet* kerncap_softgpu_isa(
    unsigned version, const char* processor, const char** error) {
  using namespace kerncap::softgpu;
  const auto fail = [error](const char* why) -> InstructionSet* {
    if (error != nullptr) *error = why;
    return nullptr;
  };
#if defined(__AVX2__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return fail(
        "the software GPU was built for processors with AVX2, FMA and "
        "F16C; build it with "
        "-DKERNCAP_SOFTGPU_CPU=x86-64");
#endif
  if (version != isa_interface_version)
    return fail(
        "libkerncap-softgpu-isa.so has another interface version than "
        "libkerncap-softgpu.so");
  try {
    isa::Target target;
    if (processor == nullptr || !isa::find_target(processor, target))
      return fail("the software GPU does not know this processor");
    return new isa::AmdInstructionSet(std::move(target));
  } catch (...) {
    return fail("the instruction set of the software GPU could not be set up");
  }
}
