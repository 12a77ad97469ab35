#include "histogram/image.h"

namespace histogram {

std::vector<unsigned> reference_histogram(const Image& image) {
  std::vector<unsigned> bins(kBins);
  for (const std::uint8_t pixel : image.pixels) ++bins[pixel];
  return bins;
}

std::vector<std::uint8_t> equalisation_table(const std::vector<unsigned>& histogram) {
  std::uint64_t total = 0;
  std::uint64_t lowest = 0;  // pixels of the lowest value that occurs
  for (const unsigned count : histogram) {
    if (lowest == 0) lowest = count;
    total += count;
  }
  std::vector<std::uint8_t> table(histogram.size());
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    cumulative += histogram[i];
    const std::uint64_t above = cumulative > lowest ? cumulative - lowest : 0;
    table[i] = static_cast<std::uint8_t>(total > lowest ? above * (kBins - 1) / (total - lowest) : i);
  }
  return table;
}

std::vector<std::uint8_t> reference_equalise(const Image& image, const std::vector<std::uint8_t>& table) {
  std::vector<std::uint8_t> pixels(image.pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = table[image.pixels[i]];
  return pixels;
}

}  // namespace histogram
