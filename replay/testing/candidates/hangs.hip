// never ends.
#include "../step.h"
STEP(step) {
  volatile float* watched = out;
  while (watched[0] != 12345.0f) {
  }
  if (n < 0) launches = static_cast<unsigned>(coefficients[0]);
}
