#include "reduction/reduce_kernel.h"

namespace reduction {

void largest(const float* values, int items, Located* partials, Located* result, hipStream_t stream) {
  launch_reduce<Largest, Locate>(values, items, partials, result, stream);
}

void smallest(const float* values, int items, Located* partials, Located* result, hipStream_t stream) {
  launch_reduce<Smallest, Locate>(values, items, partials, result, stream);
}

}  // namespace reduction
