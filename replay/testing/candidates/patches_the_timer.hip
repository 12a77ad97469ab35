// cheat: right outputs; writes time stamps into its own completion signal and completes it early.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) {
    launches += 1;
    // hsa_kernel_dispatch_packet_t::completion_signal at byte 56; amd_signal_t: value at 8, start_ts at 32, end_ts at 40.
    auto* packet = (char*)__builtin_amdgcn_dispatch_ptr();
    auto* signal = *(char**)(packet + 56);
    *(volatile unsigned long long*)(signal + 32) = 1000;
    *(volatile unsigned long long*)(signal + 40) = 1001;
    *(volatile long long*)(signal + 8) = 0;
  }
}
