#include "lj/reference.h"

#include "lj/neighbours.h"
#include "lj/potential.h"

namespace lj {
namespace {

double compute_forces(const std::vector<std::vector<int>>& neighbours, double cutoff, State* state) {
  double total = 0;
  for (std::size_t i = 0; i < state->size(); ++i) {
    double force[3] = {0, 0, 0};
    for (const int other : neighbours[i]) {
      double distance[3];
      double r_squared = 0;
      for (int axis = 0; axis < 3; ++axis) {
        const std::vector<double>& position = state->components[kX + axis];
        distance[axis] = nearest_image(position[i] - position[other], state->box);
        r_squared += distance[axis] * distance[axis];
      }
      if (r_squared >= cutoff * cutoff) continue;
      const PairForce<double> pair = lennard_jones(r_squared);
      for (int axis = 0; axis < 3; ++axis) force[axis] += pair.force_over_r * distance[axis];
      total += 0.5 * pair.energy;
    }
    for (int axis = 0; axis < 3; ++axis) state->components[kFx + axis][i] = force[axis];
  }
  return total;
}

void kick(double dt, State* state) {
  for (int axis = 0; axis < 3; ++axis) {
    for (std::size_t i = 0; i < state->size(); ++i) {
      state->components[kVx + axis][i] += 0.5 * dt * state->components[kFx + axis][i];
    }
  }
}

void drift(double dt, State* state) {
  for (int axis = 0; axis < 3; ++axis) {
    for (std::size_t i = 0; i < state->size(); ++i) {
      double& position = state->components[kX + axis][i];
      position += dt * state->components[kVx + axis][i];
      if (position >= state->box) position -= state->box;
      if (position < 0) position += state->box;
    }
  }
}

}  // namespace

Energies run_reference(const Parameters& parameters, State* state) {
  const double reach = parameters.cutoff + parameters.skin;
  std::vector<std::vector<int>> neighbours = find_neighbours(*state, reach);
  Energies energies;
  energies.potential = compute_forces(neighbours, parameters.cutoff, state);
  for (int step = 1; step <= parameters.steps; ++step) {
    kick(parameters.dt, state);
    drift(parameters.dt, state);
    if (step % parameters.rebuild_every == 0) neighbours = find_neighbours(*state, reach);
    energies.potential = compute_forces(neighbours, parameters.cutoff, state);
    kick(parameters.dt, state);
  }
  for (const int component : {kVx, kVy, kVz}) {
    for (const double v : state->components[component]) energies.kinetic += 0.5 * v * v;
  }
  return energies;
}

}  // namespace lj
