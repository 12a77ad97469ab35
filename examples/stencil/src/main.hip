#include <cmath>
#include <iostream>
#include <utility>

#include "common/command_line.h"
#include "common/device.h"
#include "stencil/kernels.h"

namespace {

struct Options {
  stencil::Grid grid;
  int steps = 8;
  unsigned long long seed = 1;
  int device = 0;
  bool no_check = false;
};

bool run(const Options& options) {
  common::select_device(options.device);
  const stencil::Problem problem = stencil::make_problem(options.grid, options.seed);
  const stencil::Grid& grid = problem.grid;
  const std::size_t source = (static_cast<std::size_t>(problem.source_z + stencil::kRadius) * grid.padded_y() +
                              problem.source_y + stencil::kRadius) *
                                 grid.padded_x() +
                             problem.source_x + stencil::kRadius;

  const common::DeviceBuffer<float> velocity(problem.velocity_squared);
  common::DeviceBuffer<float> current(grid.padded_size());
  common::DeviceBuffer<float> next(grid.padded_size());
  current.clear();
  next.clear();
  stencil::set_constants(grid);

  for (int step = 0; step < options.steps; ++step) {
    stencil::wave_step(grid, current.data(), next.data(), velocity.data(), nullptr);
    std::swap(current, next);
    stencil::inject(current.data(), source, stencil::ricker(problem.frequency, step), nullptr);
  }
  HIP_CHECK(hipDeviceSynchronize());

  const std::vector<float> field = current.download();
  double energy = 0;
  for (const float value : field) energy += static_cast<double>(value) * value;
  std::cout << grid.nx << " x " << grid.ny << " x " << grid.nz << " points, " << options.steps << " steps, "
            << stencil::injections() << " injections\nsum of squares " << energy << '\n';
  if (options.no_check) return true;

  const std::vector<float> expected = stencil::run_reference(problem, options.steps);
  double largest_value = 0, largest_error = 0;
  for (std::size_t i = 0; i < field.size(); ++i) {
    const double error = std::fabs(static_cast<double>(field[i]) - expected[i]);
    if (!(error <= largest_error)) largest_error = error;
    largest_value = std::fmax(largest_value, std::fabs(expected[i]));
  }
  const double allowed = 1e-5 * largest_value;
  const bool right = largest_error <= allowed && stencil::injections() == static_cast<unsigned>(options.steps);
  std::cout << "largest error " << largest_error << " (allowed " << allowed << ")\n"
            << (right ? "PASSED" : "FAILED") << '\n';
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  common::CommandLine command_line("The acoustic wave equation, of eighth order in space.");
  command_line.add("nx", &options.grid.nx, "points in x");
  command_line.add("ny", &options.grid.ny, "points in y");
  command_line.add("nz", &options.grid.nz, "points in z");
  command_line.add("steps", &options.steps, "time steps");
  command_line.add("seed", &options.seed, "seed of the velocities");
  command_line.add("device", &options.device, "number of the GPU");
  command_line.add_flag("no-check", &options.no_check, "don't compare with the host");
  command_line.parse(argc, argv);
  if (options.grid.nx < 1 || options.grid.ny < 1 || options.grid.nz < 1 || options.steps < 0) {
    command_line.wrong_usage(argv[0], "--nx, --ny and --nz must be at least 1, --steps at least 0");
  }
  return common::run_main(argv[0], [&] { return run(options); });
}
