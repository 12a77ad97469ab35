#include <cmath>
#include <utility>

#include "common/random.h"
#include "stencil/wave.h"

namespace stencil {

float ricker(float frequency, int step) {
  const float t = frequency * static_cast<float>(step) - 1.0f;
  const float squared = 9.8696044f * t * t;
  return (1.0f - 2.0f * squared) * std::exp(-squared);
}

Problem make_problem(const Grid& grid, unsigned long long seed) {
  common::Random random(seed);
  Problem problem;
  problem.grid = grid;
  problem.source_x = grid.nx / 2;
  problem.source_y = grid.ny / 2;
  problem.source_z = grid.nz / 2;
  const std::size_t plane = static_cast<std::size_t>(grid.padded_x()) * grid.padded_y();
  for (std::size_t i = 0; i < grid.padded_size(); ++i) {
    const bool lower_layer = i / plane > static_cast<std::size_t>(grid.padded_z()) / 2;
    problem.velocity_squared.push_back(static_cast<float>((lower_layer ? 0.16 : 0.08) * random.uniform(0.9, 1.1)));
  }
  return problem;
}

std::vector<float> run_reference(const Problem& problem, int steps) {
  const Grid& grid = problem.grid;
  const std::ptrdiff_t row = grid.padded_x();
  const std::ptrdiff_t plane = row * grid.padded_y();
  std::vector<float> current(grid.padded_size()), next(grid.padded_size());
  for (int step = 0; step < steps; ++step) {
    for (int z = 0; z < grid.nz; ++z) {
      for (int y = 0; y < grid.ny; ++y) {
        for (int x = 0; x < grid.nx; ++x) {
          const std::ptrdiff_t at = (z + kRadius) * plane + (y + kRadius) * row + x + kRadius;
          double laplace = 3.0 * kWeights[0] * current[at];
          for (int i = 1; i <= kRadius; ++i) {
            for (const std::ptrdiff_t stride : {std::ptrdiff_t{1}, row, plane}) {
              laplace += static_cast<double>(kWeights[i]) *
                         (static_cast<double>(current[at - i * stride]) + current[at + i * stride]);
            }
          }
          next[at] = static_cast<float>(2.0 * current[at] - next[at] + problem.velocity_squared[at] * laplace);
        }
      }
    }
    std::swap(current, next);
    current[(problem.source_z + kRadius) * plane + (problem.source_y + kRadius) * row + problem.source_x + kRadius] +=
        ricker(problem.frequency, step);
  }
  return current;
}

}  // namespace stencil
