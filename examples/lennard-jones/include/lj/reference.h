#pragma once

#include "lj/system.h"

namespace lj {

// The same steps on the host, in double precision.
Energies run_reference(const Parameters& parameters, State* state);

}  // namespace lj
