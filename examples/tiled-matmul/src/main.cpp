#include <cmath>
#include <cstdint>
#include <iostream>

#include "common/command_line.h"
#include "common/device.h"
#include "common/random.h"
#include "matmul/gemm.h"

namespace {

struct Options {
  matmul::Shape shape;
  std::string type = "all";
  std::uint64_t seed = 1;
  int repeat = 1;
  int device = 0;
  bool no_check = false;
};

// Reports the largest error and whether it is within the tolerance; a NaN is not.
template <typename T>
bool report(const char* name, const std::vector<T>& result, const std::vector<T>& expected, double tolerance) {
  double largest = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double error = std::fabs(static_cast<double>(result[i]) - static_cast<double>(expected[i]));
    if (!(error <= largest)) largest = error;
  }
  const bool right = largest <= tolerance;
  std::cout << name << ": largest error " << largest << " (allowed " << tolerance << ") " << (right ? "ok" : "WRONG")
            << '\n';
  return right;
}

template <typename In, typename Out>
bool run_plain(const Options& options, const char* name, double tolerance) {
  const matmul::Problem<In> problem = matmul::make_problem<In>(options.shape, options.seed);
  const common::DeviceBuffer<In> a(problem.a);
  const common::DeviceBuffer<In> b(problem.b);
  common::DeviceBuffer<Out> c(static_cast<std::size_t>(options.shape.m) * options.shape.n);
  for (int i = 0; i < options.repeat; ++i) matmul::gemm(options.shape, a.data(), b.data(), c.data(), nullptr);
  HIP_CHECK(hipDeviceSynchronize());
  if (options.no_check) return true;
  return report(name, c.download(), matmul::reference_product<In, Out>(problem), tolerance);
}

bool run_bias_relu(const Options& options, double tolerance) {
  const matmul::Problem<float> problem = matmul::make_problem<float>(options.shape, options.seed);
  common::Random random(options.seed + 1);
  std::vector<float> bias(options.shape.n);
  for (float& value : bias) value = static_cast<float>(random.uniform(-1, 1));

  const common::DeviceBuffer<float> a(problem.a);
  const common::DeviceBuffer<float> b(problem.b);
  const common::DeviceBuffer<float> device_bias(bias);
  common::DeviceBuffer<float> c(static_cast<std::size_t>(options.shape.m) * options.shape.n);
  bool right = true;
  for (const bool fused : {true, false}) {
    c.clear();
    matmul::gemm_bias_relu(options.shape, a.data(), b.data(), device_bias.data(), c.data(), fused, nullptr);
    HIP_CHECK(hipDeviceSynchronize());
    if (options.no_check) continue;
    right = report(fused ? "bias+relu, fused" : "bias+relu, two kernels", c.download(),
                   matmul::reference_bias_relu(problem, bias), tolerance) &&
            right;
  }
  return right;
}

bool run(const Options& options) {
  common::select_device(options.device);
  std::cout << "C (" << options.shape.m << " x " << options.shape.n << ") = A B, inner dimension " << options.shape.k
            << '\n';
  const auto wanted = [&](const char* type) { return options.type == "all" || options.type == type; };
  // The inputs are in [-1, 1]: rounding errors grow at most with the inner dimension.
  const double float_tolerance = 1.2e-7 * options.shape.k;
  const double double_tolerance = 2.3e-16 * options.shape.k * 2;
  bool right = true;
  if (wanted("float")) right = run_plain<float, float>(options, "float", float_tolerance) && right;
  if (wanted("double")) right = run_plain<double, double>(options, "double", double_tolerance) && right;
  if (wanted("int8")) right = run_plain<std::int8_t, std::int32_t>(options, "int8", 0) && right;
  if (wanted("bias-relu")) right = run_bias_relu(options, float_tolerance) && right;
  if (!options.no_check) std::cout << (right ? "PASSED" : "FAILED") << '\n';
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  common::CommandLine command_line("Tiled matrix products of several types.");
  command_line.add("m", &options.shape.m, "rows of A and C");
  command_line.add("n", &options.shape.n, "columns of B and C");
  command_line.add("k", &options.shape.k, "columns of A, rows of B");
  command_line.add("type", &options.type, "float, double, int8, bias-relu or all");
  command_line.add("repeat", &options.repeat, "how often each plain product is computed");
  command_line.add("seed", &options.seed, "seed of the matrices");
  command_line.add("device", &options.device, "number of the GPU");
  command_line.add_flag("no-check", &options.no_check, "don't compare with the host");
  command_line.parse(argc, argv);
  if (options.shape.m < 1 || options.shape.n < 1 || options.shape.k < 1) {
    command_line.wrong_usage(argv[0], "--m, --n and --k must be at least 1");
  }
  bool known = false;
  for (const char* type : {"float", "double", "int8", "bias-relu", "all"}) known = known || options.type == type;
  if (!known) command_line.wrong_usage(argv[0], "--type is float, double, int8, bias-relu or all");
  return common::run_main(argv[0], [&] { return run(options); });
}
