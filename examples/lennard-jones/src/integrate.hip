#include "lj/device_system.h"

namespace lj {

template <typename Real>
__device__ Real wrap(Real position, Real box) {
  if (position >= box) return position - box;
  if (position < Real(0)) return position + box;
  return position;
}

// Three components per particle, spread over the grid's second dimension.
template <typename Real>
__global__ void kick_drift(Real** state, int particles, Real dt, Real box) {
  const int particle = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int axis = static_cast<int>(blockIdx.y);
  if (particle >= particles) return;
  Real* position = state[kX + axis];
  Real* velocity = state[kVx + axis];
  const Real* force = state[kFx + axis];
  velocity[particle] += Real(0.5) * dt * force[particle];
  position[particle] = wrap(position[particle] + dt * velocity[particle], box);
}

template <typename Real>
__global__ void kick(Real** state, int particles, Real dt) {
  const int particle = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int axis = static_cast<int>(blockIdx.y);
  if (particle >= particles) return;
  state[kVx + axis][particle] += Real(0.5) * dt * state[kFx + axis][particle];
}

constexpr unsigned kBlock = 256;

template <typename Real>
void launch_kick_drift(const DeviceView<Real>& view, Real dt, hipStream_t stream) {
  const dim3 grid(common::blocks_for(view.particles, kBlock), 3);
  kick_drift<Real><<<grid, kBlock, 0, stream>>>(view.state, view.particles, dt, view.box);
  HIP_CHECK(hipGetLastError());
}

template <typename Real>
void launch_kick(const DeviceView<Real>& view, Real dt, hipStream_t stream) {
  const dim3 grid(common::blocks_for(view.particles, kBlock), 3);
  kick<Real><<<grid, kBlock, 0, stream>>>(view.state, view.particles, dt);
  HIP_CHECK(hipGetLastError());
}

template void launch_kick_drift<float>(const DeviceView<float>&, float, hipStream_t);
template void launch_kick_drift<double>(const DeviceView<double>&, double, hipStream_t);
template void launch_kick<float>(const DeviceView<float>&, float, hipStream_t);
template void launch_kick<double>(const DeviceView<double>&, double, hipStream_t);

}  // namespace lj
