#include <cmath>
#include <iostream>

#include "common/command_line.h"
#include "lj/device_system.h"
#include "lj/potential.h"
#include "lj/reference.h"

namespace {

// The largest difference of a position, taking the periodic box into account.
double largest_displacement(const lj::State& a, const lj::State& b) {
  double largest = 0;
  for (const int component : {lj::kX, lj::kY, lj::kZ}) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double difference = lj::nearest_image(a.components[component][i] - b.components[component][i], a.box);
      // Written so that a NaN counts as a difference.
      if (!(std::fabs(difference) <= largest)) largest = std::fabs(difference);
    }
  }
  return largest;
}

bool run(const lj::Parameters& parameters, const std::string& precision, int device, bool check) {
  common::select_device(device);
  const lj::State initial = lj::make_lattice(parameters);
  lj::State state = initial;
  const lj::Energies energies = precision == "double" ? lj::run_on_device<double>(parameters, &state)
                                                      : lj::run_on_device<float>(parameters, &state);
  const double particles = static_cast<double>(state.size());
  std::cout << state.size() << " particles, " << parameters.steps << " steps, " << precision
            << "\npotential energy per particle " << energies.potential / particles
            << "\nkinetic energy per particle   " << energies.kinetic / particles << '\n';
  if (!check) return true;

  lj::State reference = initial;
  const lj::Energies expected = lj::run_reference(parameters, &reference);
  const double tolerance = precision == "double" ? 1e-9 : 2e-4;
  const double displacement = largest_displacement(state, reference);
  const double energy_error =
      std::fabs(energies.potential + energies.kinetic - expected.potential - expected.kinetic) / particles;
  const bool right = displacement <= tolerance && energy_error <= tolerance;
  std::cout << "largest difference of a position " << displacement << ", of the energy per particle " << energy_error
            << " (allowed " << tolerance << ")\n"
            << (right ? "PASSED" : "FAILED") << '\n';
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  lj::Parameters parameters;
  std::string precision = "float";
  int device = 0;
  bool no_check = false;
  common::CommandLine command_line("Molecular dynamics of a Lennard-Jones liquid with neighbour lists.");
  command_line.add("cells", &parameters.cells, "lattice cells along each edge, 4 particles each");
  command_line.add("steps", &parameters.steps, "time steps");
  command_line.add("dt", &parameters.dt, "time step");
  command_line.add("density", &parameters.density, "particles per volume");
  command_line.add("temperature", &parameters.temperature, "initial temperature");
  command_line.add("cutoff", &parameters.cutoff, "cutoff radius of the potential");
  command_line.add("skin", &parameters.skin, "reach of the neighbour lists beyond the cutoff");
  command_line.add("rebuild-every", &parameters.rebuild_every, "steps between two neighbour lists");
  command_line.add("seed", &parameters.seed, "seed of displacements and velocities");
  command_line.add("precision", &precision, "float or double");
  command_line.add("device", &device, "number of the GPU");
  command_line.add_flag("no-check", &no_check, "don't compare with the host");
  command_line.parse(argc, argv);
  if (precision != "float" && precision != "double")
    command_line.wrong_usage(argv[0], "--precision is float or double");
  if (parameters.cells < 1 || parameters.steps < 0 || parameters.rebuild_every < 1) {
    command_line.wrong_usage(argv[0], "--cells and --rebuild-every must be at least 1, --steps at least 0");
  }
  return common::run_main(argv[0], [&] { return run(parameters, precision, device, !no_check); });
}
