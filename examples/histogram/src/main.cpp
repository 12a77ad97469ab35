#include <algorithm>
#include <cstring>
#include <iostream>
#include <numeric>

#include "common/command_line.h"
#include "common/device.h"
#include "histogram/image.h"
#include "histogram/kernels.h"

namespace {

struct Options {
  int width = 320;
  int height = 240;
  std::string method = "both";
  std::uint64_t seed = 1;
  int device = 0;
  bool no_check = false;
};

bool run(const Options& options) {
  using namespace histogram;
  common::select_device(options.device);
  const Image image = make_image(options.width, options.height, options.seed);
  std::vector<Pixels> words(image.pixels.size() / sizeof(Pixels));
  std::memcpy(words.data(), image.pixels.data(), image.pixels.size());
  common::DeviceBuffer<Pixels> pixels(words);
  common::DeviceBuffer<unsigned> bins(kBins);
  const int count = static_cast<int>(words.size());

  bool right = true;
  std::vector<unsigned> result;
  const std::vector<unsigned> expected = reference_histogram(image);
  const auto measure = [&](const char* name, auto kernel) {
    if (options.method != name && options.method != "both") return;
    bins.clear();
    kernel(pixels.data(), count, bins.data(), nullptr);
    HIP_CHECK(hipDeviceSynchronize());
    result = bins.download();
    const std::size_t peak = std::max_element(result.begin(), result.end()) - result.begin();
    const bool same = result == expected;
    std::cout << name << ": " << std::accumulate(result.begin(), result.end(), 0ull) << " pixels, most frequent value "
              << peak << " (" << result[peak] << " times)"
              << (options.no_check ? ""
                  : same           ? " ok"
                                   : " WRONG")
              << '\n';
    right = right && same;
  };
  measure("global", count_global);
  measure("shared", count_shared);

  const std::vector<std::uint8_t> table = equalisation_table(result);
  const common::DeviceBuffer<std::uint8_t> device_table(table);
  common::DeviceBuffer<unsigned long long> changed(1);
  changed.clear();
  equalise(pixels.data(), count, device_table.data(), changed.data(), nullptr);
  HIP_CHECK(hipDeviceSynchronize());
  words = pixels.download();
  std::cout << "equalised: " << changed.download()[0] << " pixels changed\n";
  if (options.no_check) return true;

  const std::vector<std::uint8_t> expected_pixels = reference_equalise(image, table);
  unsigned long long differences = 0;
  for (std::size_t i = 0; i < expected_pixels.size(); ++i) differences += expected_pixels[i] != image.pixels[i];
  right = right && std::memcmp(words.data(), expected_pixels.data(), expected_pixels.size()) == 0 &&
          changed.download()[0] == differences;
  std::cout << (right ? "PASSED" : "FAILED") << '\n';
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  common::CommandLine command_line("Histogram of an image, and its equalisation.");
  command_line.add("width", &options.width, "width of the image, a multiple of 4");
  command_line.add("height", &options.height, "height of the image");
  command_line.add("method", &options.method, "global (atomics in memory), shared (in LDS) or both");
  command_line.add("seed", &options.seed, "seed of the image");
  command_line.add("device", &options.device, "number of the GPU");
  command_line.add_flag("no-check", &options.no_check, "don't compare with the host");
  command_line.parse(argc, argv);
  if (options.width < 4 || options.width % 4 != 0 || options.height < 1) {
    command_line.wrong_usage(argv[0], "--width must be a positive multiple of 4, --height at least 1");
  }
  if (options.method != "global" && options.method != "shared" && options.method != "both") {
    command_line.wrong_usage(argv[0], "--method is global, shared or both");
  }
  return common::run_main(argv[0], [&] { return run(options); });
}
