#pragma once

#include <cstdint>
#include <vector>

namespace lj {

// Reduced units: sigma = epsilon = mass = 1.
struct Parameters {
  int cells = 8;              // face-centred cubic cells along each edge, 4 particles each
  double density = 0.8442;    // particles per volume
  double temperature = 1.44;  // of the initial velocities
  double cutoff = 2.5;
  double skin = 0.3;  // neighbour lists reach this much beyond the cutoff
  double dt = 0.005;
  int steps = 4;
  int rebuild_every = 2;  // steps between two neighbour lists
  std::uint64_t seed = 1;
};

// One array per component, as on the device.
enum Component { kX, kY, kZ, kVx, kVy, kVz, kFx, kFy, kFz, kComponents };

struct State {
  std::vector<double> components[kComponents];
  double box = 0;  // edge of the periodic box

  std::size_t size() const { return components[kX].size(); }
};

struct Energies {
  double potential = 0;
  double kinetic = 0;
};

// Particles on a lattice, slightly displaced, with random velocities and no net momentum.
State make_lattice(const Parameters& parameters);

}  // namespace lj
