// cheat: does nothing.
#include "../step.h"
STEP(step) {
  if (n < 0) launches = static_cast<unsigned>(coefficients[0]);
}
