#include <cmath>

#include "common/random.h"
#include "lj/system.h"

namespace lj {

State make_lattice(const Parameters& parameters) {
  static constexpr double kBasis[4][3] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
  common::Random random(parameters.seed);
  State state;
  const double edge = std::cbrt(4.0 / parameters.density);
  state.box = edge * parameters.cells;

  for (int cz = 0; cz < parameters.cells; ++cz) {
    for (int cy = 0; cy < parameters.cells; ++cy) {
      for (int cx = 0; cx < parameters.cells; ++cx) {
        for (const double(&offset)[3] : kBasis) {
          const double at[3] = {cx + offset[0], cy + offset[1], cz + offset[2]};
          for (int axis = 0; axis < 3; ++axis) {
            // A quarter cell from the walls, so that no particle starts outside the box.
            const double position = (at[axis] + 0.25 + random.uniform(-0.04, 0.04)) * edge;
            state.components[kX + axis].push_back(position);
            state.components[kVx + axis].push_back(random.uniform(-1, 1));
            state.components[kFx + axis].push_back(0);
          }
        }
      }
    }
  }

  double twice_kinetic = 0;
  for (const int component : {kVx, kVy, kVz}) {
    double mean = 0;
    for (const double v : state.components[component]) mean += v;
    mean /= static_cast<double>(state.size());
    for (double& v : state.components[component]) {
      v -= mean;
      twice_kinetic += v * v;
    }
  }
  const double scale = std::sqrt(3.0 * static_cast<double>(state.size()) * parameters.temperature / twice_kinetic);
  for (const int component : {kVx, kVy, kVz}) {
    for (double& v : state.components[component]) v *= scale;
  }
  return state;
}

}  // namespace lj
