#include <cmath>
#include <iomanip>
#include <iostream>

#include "common/command_line.h"
#include "common/device.h"
#include "common/random.h"
#include "reduction/reduce.h"

namespace {

struct Options {
  int items = 100003;
  std::string operation = "all";
  unsigned long long seed = 1;
  int device = 0;
  bool no_check = false;
};

std::ostream& operator<<(std::ostream& out, const reduction::Located& located) {
  return out << located.value << " at " << located.index;
}

struct Inputs {
  std::vector<float> a, b;
  std::vector<int> integers;
};

Inputs make_inputs(const Options& options) {
  common::Random random(options.seed);
  Inputs inputs;
  for (int i = 0; i < options.items; ++i) {
    inputs.a.push_back(static_cast<float>(random.uniform(-1, 1)));
    inputs.b.push_back(static_cast<float>(random.uniform(-1, 1)));
    inputs.integers.push_back(static_cast<int>(random.below(1u << 30)) - (1 << 29));
  }
  return inputs;
}

template <typename Operation>
reduction::Located reference_extremum(const std::vector<float>& values) {
  reduction::Located result = Operation::neutral();
  for (std::size_t i = 0; i < values.size(); ++i) {
    result = Operation::join(result, {values[i], static_cast<int>(i)});
  }
  return result;
}

class Program {
 public:
  explicit Program(const Options& options) : options_(options), inputs_(make_inputs(options)), a_(inputs_.a) {}

  bool run() {
    const int items = options_.items;
    // Rounding errors of sums of at most `items` values below 1, in double precision.
    const double tolerance = 1e-15 * items;
    reduce<double>(
        "sum", [&](double* partials, double* result) { reduction::sum(a_.data(), items, partials, result, nullptr); },
        [&] {
          double total = 0;
          for (const float value : inputs_.a) total += static_cast<double>(value);
          return total;
        },
        tolerance);

    const common::DeviceBuffer<int> integers(inputs_.integers);
    reduce<long long>(
        "sum-int",
        [&](long long* partials, long long* result) {
          reduction::sum(integers.data(), items, partials, result, nullptr);
        },
        [&] {
          long long total = 0;
          for (const int value : inputs_.integers) total += value;
          return total;
        },
        0);

    reduce<reduction::Located>(
        "largest",
        [&](reduction::Located* partials, reduction::Located* result) {
          reduction::largest(a_.data(), items, partials, result, nullptr);
        },
        [&] { return reference_extremum<reduction::Largest>(inputs_.a); }, 0);

    reduce<reduction::Located>(
        "smallest",
        [&](reduction::Located* partials, reduction::Located* result) {
          reduction::smallest(a_.data(), items, partials, result, nullptr);
        },
        [&] { return reference_extremum<reduction::Smallest>(inputs_.a); }, 0);

    const common::DeviceBuffer<float> b(inputs_.b);
    common::DeviceBuffer<unsigned> finished(1);
    finished.clear();
    reduce<double>(
        "dot",
        [&](double* partials, double* result) {
          reduction::dot(a_.data(), b.data(), items, partials, finished.data(), result, nullptr);
        },
        [&] {
          double total = 0;
          for (std::size_t i = 0; i < inputs_.a.size(); ++i) {
            total += static_cast<double>(inputs_.a[i]) * static_cast<double>(inputs_.b[i]);
          }
          return total;
        },
        tolerance);

    if (!options_.no_check) std::cout << (right_ ? "PASSED" : "FAILED") << '\n';
    return right_;
  }

 private:
  static bool close(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }
  static bool close(long long a, long long b, double) { return a == b; }
  static bool close(const reduction::Located& a, const reduction::Located& b, double) { return a == b; }

  template <typename Value, typename Kernel, typename Reference>
  void reduce(const char* name, Kernel&& kernel, Reference&& reference, double tolerance) {
    if (options_.operation != "all" && options_.operation != name) return;
    common::DeviceBuffer<Value> partials(reduction::kMaxBlocks);
    common::DeviceBuffer<Value> result(1);
    kernel(partials.data(), result.data());
    HIP_CHECK(hipDeviceSynchronize());
    const Value value = result.download()[0];
    std::cout << std::setprecision(12) << name << ": " << value;
    if (!options_.no_check) {
      const Value expected = reference();
      const bool same = close(value, expected, tolerance);
      if (same) {
        std::cout << " ok";
      } else {
        std::cout << " WRONG, expected " << expected;
      }
      right_ = right_ && same;
    }
    std::cout << '\n';
  }

  Options options_;
  Inputs inputs_;
  common::DeviceBuffer<float> a_;
  bool right_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  common::CommandLine command_line("Sums, extrema and a scalar product.");
  command_line.add("items", &options.items, "values to reduce");
  command_line.add("operation", &options.operation, "sum, sum-int, largest, smallest, dot or all");
  command_line.add("seed", &options.seed, "seed of the values");
  command_line.add("device", &options.device, "number of the GPU");
  command_line.add_flag("no-check", &options.no_check, "don't compare with the host");
  command_line.parse(argc, argv);
  if (options.items < 1) command_line.wrong_usage(argv[0], "--items must be at least 1");
  bool known = false;
  for (const char* operation : {"sum", "sum-int", "largest", "smallest", "dot", "all"}) {
    known = known || options.operation == operation;
  }
  if (!known) command_line.wrong_usage(argv[0], "--operation is sum, sum-int, largest, smallest, dot or all");
  return common::run_main(argv[0], [&] {
    common::select_device(options.device);
    return Program(options).run();
  });
}
