#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace histogram {

constexpr int kBins = 256;

// Grey values, row by row.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

// A dark gradient with noise and bright discs: a few values are frequent, as in a photograph. A multiple of 4 pixels.
Image make_image(int width, int height, std::uint64_t seed);

std::vector<unsigned> reference_histogram(const Image& image);

// The table that makes the cumulative histogram a straight line.
std::vector<std::uint8_t> equalisation_table(const std::vector<unsigned>& histogram);

std::vector<std::uint8_t> reference_equalise(const Image& image, const std::vector<std::uint8_t>& table);

}  // namespace histogram
