#include "replay/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kerncap::replay {
namespace {

constexpr std::array answer_names{"faster", "slower", "same", "cannot tell"};

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

// Does the claim hold in every stretch of time? Neighbouring samples are not independent where other work comes and
// goes, and then the interval is too narrow: one disturbed stretch could decide alone.
template <typename Claim>
bool consistent(const std::vector<double>& ratios, Claim claim) {
  constexpr std::size_t stretches = 5;
  if (ratios.size() < 2 * stretches) return true;
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto begin = ratios.begin() + static_cast<std::ptrdiff_t>(i * ratios.size() / stretches);
    const auto end = ratios.begin() + static_cast<std::ptrdiff_t>((i + 1) * ratios.size() / stretches);
    std::vector<double> part(begin, end);
    std::sort(part.begin(), part.end());
    if (!claim(quantile(part, 0.5))) return false;
  }
  return true;
}

}  // namespace

const char* to_string(Answer answer) { return answer_names[static_cast<std::size_t>(answer)]; }

Interval median_interval(std::span<const double> samples, double confidence) {
  Interval result;
  if (samples.empty()) return result;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  result.value = quantile(sorted, 0.5);
  // The largest k (from 1) whose tail still leaves the wanted confidence; log space, because 2^-n underflows.
  const double log_half_n = -static_cast<double>(n) * std::log(2.0);
  double tail = 0;
  std::size_t rank = 0;
  double tail_at_rank = 0;
  for (std::size_t i = 0; i < n / 2 + n % 2; ++i) {
    const double log_term = std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(i) + 1) -
                            std::lgamma(static_cast<double>(n - i) + 1) + log_half_n;
    tail += std::exp(log_term);  // P(Binomial(n, 1/2) <= i)
    if (1 - 2 * tail < confidence && i > 0) break;
    rank = i;
    tail_at_rank = tail;
    if (1 - 2 * tail < confidence) break;  // even the extremes are not enough: report what they cover
  }
  result.low = sorted[rank];
  result.high = sorted[n - 1 - rank];
  result.confidence = std::max(0.0, 1 - 2 * tail_at_rank);
  return result;
}

Comparison compare_paired(std::span<const double> first, std::span<const double> second, double threshold,
                          double confidence) {
  Comparison result;
  result.threshold = threshold;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (first[i] > 0) ratios.push_back(second[i] / first[i]);
  }
  result.ratio = median_interval(ratios, confidence);
  const Interval& r = result.ratio;
  if (r.confidence < confidence) return result;  // too few pairs for any claim
  if (r.low >= 1 - threshold && r.high <= 1 + threshold) {
    result.answer = Answer::same;
  } else if (r.high < 1 && r.value < 1 - threshold && consistent(ratios, [](double m) { return m < 1; })) {
    result.answer = Answer::faster;
  } else if (r.low > 1 && r.value > 1 + threshold && consistent(ratios, [](double m) { return m > 1; })) {
    result.answer = Answer::slower;
  }
  return result;
}

std::vector<std::size_t> outliers(std::span<const double> samples, double factor) {
  std::vector<std::size_t> result;
  if (samples.size() < 4) return result;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double q1 = quantile(sorted, 0.25), q3 = quantile(sorted, 0.75);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] > q3 + factor * (q3 - q1)) result.push_back(i);
  }
  return result;
}

}  // namespace kerncap::replay
