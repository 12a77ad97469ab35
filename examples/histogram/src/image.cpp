#include "histogram/image.h"

#include <algorithm>

#include "common/random.h"

namespace histogram {

Image make_image(int width, int height, std::uint64_t seed) {
  common::Random random(seed);
  Image image;
  image.width = width;
  image.height = height;
  image.pixels.resize(static_cast<std::size_t>(width) * height);

  struct Disc {
    double x, y, radius, brightness;
  };
  std::vector<Disc> discs(8);
  for (Disc& disc : discs) {
    disc = {random.uniform(0, width), random.uniform(0, height), random.uniform(0.03, 0.12) * width,
            random.uniform(60, 200)};
  }
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double value = 16.0 + 40.0 * y / height + random.uniform(-6, 6);
      for (const Disc& disc : discs) {
        const double dx = x - disc.x;
        const double dy = y - disc.y;
        if (dx * dx + dy * dy < disc.radius * disc.radius) value += disc.brightness;
      }
      image.pixels[static_cast<std::size_t>(y) * width + x] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
  return image;
}

}  // namespace histogram
