// has no kernel of the captured name.
#include "../step.h"
STEP(stride) {
  if (n < 0) launches = static_cast<unsigned>(coefficients[0]);
}
