#pragma once

#include <cstddef>
#include <vector>

#include "common/device.h"
#include "lj/system.h"

namespace lj {

// What the kernels are given, by value.
template <typename Real>
struct DeviceView {
  Real** state;            // kComponents pointers, one per component; the arrays are updated in place
  const int* const* rows;  // for each particle a pointer to its neighbours, which lie in several allocations
  const int* row_lengths;  // entries of each row
  Real* potential;         // potential energy of each particle
  int particles;
  Real box;
  Real cutoff_squared;
};

// The device's copy of a system and of its neighbour lists.
template <typename Real>
class DeviceSystem {
 public:
  DeviceSystem(const State& state, double cutoff);

  void set_neighbours(const std::vector<std::vector<int>>& neighbours);
  DeviceView<Real> view() const;
  // Positions, velocities and forces as they are on the device.
  State download() const;
  double total_potential() const;

 private:
  static constexpr std::size_t kRowsPerPage = 256;

  std::vector<common::DeviceBuffer<Real>> components_;
  common::DeviceBuffer<Real*> component_table_;
  std::vector<common::DeviceBuffer<int>> pages_;
  common::DeviceBuffer<const int*> rows_;
  common::DeviceBuffer<int> row_lengths_;
  common::DeviceBuffer<Real> potential_;
  double box_;
  double cutoff_;
};

template <typename Real>
void launch_forces(const DeviceView<Real>& view, hipStream_t stream);

// Half a kick with the present forces, then a drift: v += f dt/2, x += v dt, x back into the box.
template <typename Real>
void launch_kick_drift(const DeviceView<Real>& view, Real dt, hipStream_t stream);

// Half a kick: v += f dt/2.
template <typename Real>
void launch_kick(const DeviceView<Real>& view, Real dt, hipStream_t stream);

// The whole simulation on the device; `state` is replaced by the final one.
template <typename Real>
Energies run_on_device(const Parameters& parameters, State* state);

}  // namespace lj
