#pragma once

#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#define LJ_HOST_DEVICE __host__ __device__
#else
#define LJ_HOST_DEVICE
#endif

namespace lj {

// The shortest of all images of a distance in a periodic box.
template <typename Real>
LJ_HOST_DEVICE inline Real nearest_image(Real distance, Real box) {
  const Real half = box * Real(0.5);
  if (distance > half) return distance - box;
  if (distance < -half) return distance + box;
  return distance;
}

template <typename Real>
struct PairForce {
  Real force_over_r;  // force along the distance, divided by the distance
  Real energy;
};

// 4 (r^-12 - r^-6) and its derivative.
template <typename Real>
LJ_HOST_DEVICE inline PairForce<Real> lennard_jones(Real r_squared) {
  const Real inverse2 = Real(1) / r_squared;
  const Real inverse6 = inverse2 * inverse2 * inverse2;
  return {Real(48) * inverse6 * (inverse6 - Real(0.5)) * inverse2, Real(4) * inverse6 * (inverse6 - Real(1))};
}

}  // namespace lj
