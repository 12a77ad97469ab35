#pragma once

#include <vector>

namespace stencil {

// Points the stencil reaches in each direction: eighth order in space.
constexpr int kRadius = 4;

// The central weight and those of the neighbours, of the second derivative's eighth-order approximation.
constexpr float kWeights[kRadius + 1] = {-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};

// A box of nx * ny * nz points, x fastest, with a border of kRadius points that stays zero on every side.
struct Grid {
  int nx = 48;
  int ny = 40;
  int nz = 24;

  int padded_x() const { return nx + 2 * kRadius; }
  int padded_y() const { return ny + 2 * kRadius; }
  int padded_z() const { return nz + 2 * kRadius; }
  std::size_t padded_size() const { return static_cast<std::size_t>(padded_x()) * padded_y() * padded_z(); }
};

// The acoustic wave equation u_tt = c^2 laplace(u) + source.
struct Problem {
  Grid grid;
  std::vector<float> velocity_squared;  // (c dt / dx)^2 of every padded point
  int source_x = 0, source_y = 0, source_z = 0;
  float frequency = 0.06f;  // of the source, per step
};

// The source's amplitude at a step: a Ricker wavelet.
float ricker(float frequency, int step);

// Two layers of different velocity with random variations; the source sits in the middle.
Problem make_problem(const Grid& grid, unsigned long long seed);

// The field after `steps` steps, on the host.
std::vector<float> run_reference(const Problem& problem, int steps);

}  // namespace stencil
