#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "common/command_line.h"
#include "common/device.h"
#include "spmv/kernels.h"
#include "spmv/matrix.h"

namespace {

struct Options {
  int pages = 2000;
  int links = 8;
  double damping = 0.85;
  int iterations = 4;
  std::string method = "both";
  std::uint64_t seed = 1;
  int device = 0;
  bool no_check = false;
};

bool run(const Options& options) {
  common::select_device(options.device);
  const spmv::CsrMatrix matrix = spmv::make_graph(options.pages, options.links, options.seed);
  const common::DeviceBuffer<int> offsets(matrix.offsets);
  const common::DeviceBuffer<int> columns(matrix.columns);
  const common::DeviceBuffer<float> values(matrix.values);
  const spmv::DeviceCsr device_matrix = {matrix.rows, offsets.data(), columns.data(), values.data()};
  std::cout << options.pages << " pages, " << matrix.columns.size() << " links, " << options.iterations
            << " iterations\n";

  const float damping = static_cast<float>(options.damping);
  const float teleport = static_cast<float>((1 - options.damping) / options.pages);
  const std::vector<double> expected = spmv::reference_page_rank(matrix, options.damping, options.iterations);
  bool right = true;
  const auto rank = [&](const char* name, auto step) {
    if (options.method != name && options.method != "both") return;
    common::DeviceBuffer<float> current(std::vector<float>(options.pages, 1.0f / static_cast<float>(options.pages)));
    common::DeviceBuffer<float> next(options.pages);
    next.clear();
    for (int i = 0; i < options.iterations; ++i) {
      step(device_matrix, current.data(), damping, teleport, next.data(), nullptr);
      std::swap(current, next);
    }
    HIP_CHECK(hipDeviceSynchronize());

    const std::vector<float> result = current.download();
    const std::size_t best = std::max_element(result.begin(), result.end()) - result.begin();
    std::cout << name << ": best page " << best << ", rank " << result[best];
    if (!options.no_check) {
      double largest = 0;
      for (std::size_t i = 0; i < result.size(); ++i) {
        const double error = std::fabs(result[i] - expected[i]) / expected[i];
        if (!(error <= largest)) largest = error;
      }
      const bool same = largest <= 1e-4;
      std::cout << ", largest relative error " << largest << (same ? " ok" : " WRONG");
      right = right && same;
    }
    std::cout << '\n';
  };
  rank("scalar", spmv::step_scalar);
  rank("vector", spmv::step_vector);
  if (!options.no_check) std::cout << (right ? "PASSED" : "FAILED") << '\n';
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  common::CommandLine command_line("Page ranks of a random graph by sparse matrix-vector products.");
  command_line.add("pages", &options.pages, "rows of the matrix");
  command_line.add("links", &options.links, "links that leave a page, on average");
  command_line.add("damping", &options.damping, "weight of the links against a jump to any page");
  command_line.add("iterations", &options.iterations, "matrix-vector products");
  command_line.add("method", &options.method, "scalar (a thread per row), vector (16 lanes per row) or both");
  command_line.add("seed", &options.seed, "seed of the graph");
  command_line.add("device", &options.device, "number of the GPU");
  command_line.add_flag("no-check", &options.no_check, "don't compare with the host");
  command_line.parse(argc, argv);
  if (options.pages < 1 || options.links < 1 || options.iterations < 0) {
    command_line.wrong_usage(argv[0], "--pages and --links must be at least 1, --iterations at least 0");
  }
  if (options.method != "scalar" && options.method != "vector" && options.method != "both") {
    command_line.wrong_usage(argv[0], "--method is scalar, vector or both");
  }
  return common::run_main(argv[0], [&] { return run(options); });
}
