#include "replay/software_gpu.h"

#include <dlfcn.h>

namespace kerncap::replay {
namespace {

// softgpu/control.h, whose library is preloaded and no dependency of this program.
struct Control {
  std::uint32_t size = sizeof(Control), counter_clock = 0;
  std::uint64_t seed = 0, poison = 0;
};
using ControlFunction = int (*)(const Control*);

ControlFunction control_function() {
  static const auto function = reinterpret_cast<ControlFunction>(::dlsym(RTLD_DEFAULT, "kerncap_softgpu_control"));
  return function;
}

}  // namespace

bool on_software_gpu() { return control_function() != nullptr; }

void set_circumstances(const Circumstances& wanted) {
  if (control_function() == nullptr) return;
  Control control;
  control.counter_clock = wanted.counter_clock ? 1 : 0;
  control.seed = wanted.seed;
  control.poison = wanted.poison;
  control_function()(&control);
}

}  // namespace kerncap::replay
