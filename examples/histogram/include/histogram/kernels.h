#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#include "histogram/image.h"

namespace histogram {

// Four neighbouring pixels, read as one word.
using Pixels = uchar4;

// Both ADD the counts of `words` times four pixels to `bins` (kBins counters).
void count_global(const Pixels* pixels, int words, unsigned* bins, hipStream_t stream);
void count_shared(const Pixels* pixels, int words, unsigned* bins, hipStream_t stream);

// Replaces each pixel by its entry in `table` (kBins values), and counts the pixels that changed.
void equalise(Pixels* pixels, int words, const std::uint8_t* table, unsigned long long* changed, hipStream_t stream);

}  // namespace histogram
