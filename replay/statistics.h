// The statistics of `bench`: medians with distribution-free intervals, paired comparison, the stopping rule. Pure.
//
// Times of a kernel are skewed and have outliers upward (clocks, other work), so means and t-tests mislead. The
// median's interval from order statistics needs no assumption but independence: with n sorted samples, [x(k), x(n+1-k)]
// covers the median with probability 1 - 2 * P(Binomial(n, 1/2) < k).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kerncap::replay {

struct Interval {
  double value = 0, low = 0, high = 0;  // the median and its interval
  double confidence = 0;                // really reached; below the wanted one when there are too few samples
  double relative_width() const { return value == 0 ? 0 : (high - low) / value; }
};

// Throws nothing; an empty span gives zeros.
Interval median_interval(std::span<const double> samples, double confidence = 0.95);

enum class Answer { faster, slower, same, cannot_tell };
const char* to_string(Answer answer);  // "faster", "slower", "same", "cannot tell"

struct Comparison {
  Answer answer = Answer::cannot_tell;
  Interval ratio;           // time of the second over time of the first, from the pairs
  double threshold = 0.01;  // differences up to this are "same"
};

// first[i] and second[i] were measured next to each other (interleaved), so that drift cancels in their ratio.
// faster: the interval of the ratio lies below 1 and its median below 1 - threshold, and so say all fifths of the time;
// slower likewise above; same: it
// lies inside 1 +- threshold; otherwise cannot tell.
Comparison compare_paired(std::span<const double> first, std::span<const double> second, double threshold,
                          double confidence = 0.95);

struct StoppingRule {
  std::uint64_t minimum = 20, maximum = 400;  // samples (pairs)
  double relative_width = 0.005;              // enough when the interval is this narrow
  double seconds = 20;                        // wall time
};

// Samples far above the others: more than `factor` interquartile ranges over the upper quartile. Indices, ascending.
std::vector<std::size_t> outliers(std::span<const double> samples, double factor = 3);

}  // namespace kerncap::replay
