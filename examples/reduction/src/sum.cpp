#include "reduction/reduce_kernel.h"

namespace reduction {

void sum(const float* values, int items, double* partials, double* result, hipStream_t stream) {
  launch_reduce<Sum<double>, Convert>(values, items, partials, result, stream);
}

void sum(const int* values, int items, long long* partials, long long* result, hipStream_t stream) {
  launch_reduce<Sum<long long>, Convert>(values, items, partials, result, stream);
}

}  // namespace reduction
