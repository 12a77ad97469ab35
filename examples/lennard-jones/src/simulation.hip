#include <algorithm>
#include <numeric>

#include "lj/device_system.h"
#include "lj/neighbours.h"

namespace lj {

template <typename Real>
DeviceSystem<Real>::DeviceSystem(const State& state, double cutoff)
    : component_table_(kComponents),
      rows_(state.size()),
      row_lengths_(state.size()),
      potential_(state.size()),
      box_(state.box),
      cutoff_(cutoff) {
  std::vector<Real*> table;
  for (const std::vector<double>& component : state.components) {
    components_.emplace_back(std::vector<Real>(component.begin(), component.end()));
    table.push_back(components_.back().data());
  }
  component_table_.upload(table);
}

template <typename Real>
void DeviceSystem<Real>::set_neighbours(const std::vector<std::vector<int>>& neighbours) {
  pages_.clear();
  std::vector<const int*> rows;
  std::vector<int> lengths;
  for (std::size_t first = 0; first < neighbours.size(); first += kRowsPerPage) {
    const std::size_t last = std::min(first + kRowsPerPage, neighbours.size());
    std::vector<int> page;
    std::vector<std::size_t> offsets;
    for (std::size_t i = first; i < last; ++i) {
      offsets.push_back(page.size());
      page.insert(page.end(), neighbours[i].begin(), neighbours[i].end());
      lengths.push_back(static_cast<int>(neighbours[i].size()));
    }
    pages_.emplace_back(page);
    for (const std::size_t offset : offsets) rows.push_back(pages_.back().data() + offset);
  }
  rows_.upload(rows);
  row_lengths_.upload(lengths);
}

template <typename Real>
DeviceView<Real> DeviceSystem<Real>::view() const {
  return {component_table_.data(),
          rows_.data(),
          row_lengths_.data(),
          potential_.data(),
          static_cast<int>(potential_.size()),
          static_cast<Real>(box_),
          static_cast<Real>(cutoff_ * cutoff_)};
}

template <typename Real>
State DeviceSystem<Real>::download() const {
  State state;
  state.box = box_;
  for (int i = 0; i < kComponents; ++i) {
    const std::vector<Real> values = components_[i].download();
    state.components[i].assign(values.begin(), values.end());
  }
  return state;
}

template <typename Real>
double DeviceSystem<Real>::total_potential() const {
  const std::vector<Real> values = potential_.download();
  return std::accumulate(values.begin(), values.end(), 0.0);
}

template <typename Real>
Energies run_on_device(const Parameters& parameters, State* state) {
  DeviceSystem<Real> system(*state, parameters.cutoff);
  system.set_neighbours(find_neighbours(*state, parameters.cutoff + parameters.skin));
  const Real dt = static_cast<Real>(parameters.dt);
  hipStream_t stream;
  HIP_CHECK(hipStreamCreate(&stream));

  launch_forces(system.view(), stream);
  for (int step = 1; step <= parameters.steps; ++step) {
    launch_kick_drift(system.view(), dt, stream);
    if (step % parameters.rebuild_every == 0) {
      HIP_CHECK(hipStreamSynchronize(stream));
      system.set_neighbours(find_neighbours(system.download(), parameters.cutoff + parameters.skin));
    }
    launch_forces(system.view(), stream);
    launch_kick(system.view(), dt, stream);
  }
  HIP_CHECK(hipStreamSynchronize(stream));
  HIP_CHECK(hipStreamDestroy(stream));

  *state = system.download();
  Energies energies;
  energies.potential = system.total_potential();
  for (const int component : {kVx, kVy, kVz}) {
    for (const double v : state->components[component]) energies.kinetic += 0.5 * v * v;
  }
  return energies;
}

template class DeviceSystem<float>;
template class DeviceSystem<double>;
template Energies run_on_device<float>(const Parameters&, State*);
template Energies run_on_device<double>(const Parameters&, State*);

}  // namespace lj
