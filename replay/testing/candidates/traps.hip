// stops itself.
#include "../step.h"
STEP(step) {
  if (n > 0) __builtin_trap();
  launches = static_cast<unsigned>(coefficients[0]);
}
