#include "lj/neighbours.h"

#include <algorithm>

#include "lj/potential.h"

namespace lj {

std::vector<std::vector<int>> find_neighbours(const State& state, double reach) {
  const int edge = std::max(1, static_cast<int>(state.box / reach));
  const auto cell_of = [&](std::size_t particle, int axis) {
    const double position = state.components[kX + axis][particle];
    return std::clamp(static_cast<int>(position / state.box * edge), 0, edge - 1);
  };
  std::vector<std::vector<int>> cells(static_cast<std::size_t>(edge) * edge * edge);
  for (std::size_t i = 0; i < state.size(); ++i) {
    cells[(static_cast<std::size_t>(cell_of(i, 2)) * edge + cell_of(i, 1)) * edge + cell_of(i, 0)].push_back(
        static_cast<int>(i));
  }

  // Fewer than three cells along an edge are each other's neighbours on both sides: visit each only once.
  const int span = std::min(3, edge);
  const int first = edge >= 3 ? -1 : 0;
  std::vector<std::vector<int>> neighbours(state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    for (int n = 0; n < span * span * span; ++n) {
      const int steps[3] = {n % span + first, n / span % span + first, n / (span * span) + first};
      std::size_t index = 0;
      for (int axis = 2; axis >= 0; --axis) {
        index = index * edge + static_cast<std::size_t>((cell_of(i, axis) + steps[axis] + edge) % edge);
      }
      for (const int other : cells[index]) {
        if (other == static_cast<int>(i)) continue;
        double r_squared = 0;
        for (int axis = 0; axis < 3; ++axis) {
          const std::vector<double>& position = state.components[kX + axis];
          const double distance = nearest_image(position[i] - position[other], state.box);
          r_squared += distance * distance;
        }
        if (r_squared < reach * reach) neighbours[i].push_back(other);
      }
    }
    std::sort(neighbours[i].begin(), neighbours[i].end());
  }
  return neighbours;
}

}  // namespace lj
