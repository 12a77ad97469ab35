#include "lj/device_system.h"
#include "lj/potential.h"

namespace lj {

// One thread per particle walks that particle's neighbour row.
template <typename Real>
__global__ void __launch_bounds__(128) compute_forces(DeviceView<Real> view) {
  const int particle = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (particle >= view.particles) return;

  const Real* x = view.state[kX];
  const Real* y = view.state[kY];
  const Real* z = view.state[kZ];
  const Real px = x[particle];
  const Real py = y[particle];
  const Real pz = z[particle];
  const int* row = view.rows[particle];
  const int length = view.row_lengths[particle];

  Real fx = 0, fy = 0, fz = 0, energy = 0;
  for (int i = 0; i < length; ++i) {
    const int other = row[i];
    const Real dx = nearest_image(px - x[other], view.box);
    const Real dy = nearest_image(py - y[other], view.box);
    const Real dz = nearest_image(pz - z[other], view.box);
    const Real r_squared = dx * dx + dy * dy + dz * dz;
    if (r_squared < view.cutoff_squared) {
      const PairForce<Real> pair = lennard_jones(r_squared);
      fx += pair.force_over_r * dx;
      fy += pair.force_over_r * dy;
      fz += pair.force_over_r * dz;
      energy += pair.energy;
    }
  }
  view.state[kFx][particle] = fx;
  view.state[kFy][particle] = fy;
  view.state[kFz][particle] = fz;
  view.potential[particle] = Real(0.5) * energy;
}

template <typename Real>
void launch_forces(const DeviceView<Real>& view, hipStream_t stream) {
  constexpr unsigned kBlock = 128;
  compute_forces<Real><<<common::blocks_for(view.particles, kBlock), kBlock, 0, stream>>>(view);
  HIP_CHECK(hipGetLastError());
}

template void launch_forces<float>(const DeviceView<float>&, hipStream_t);
template void launch_forces<double>(const DeviceView<double>&, hipStream_t);

}  // namespace lj
