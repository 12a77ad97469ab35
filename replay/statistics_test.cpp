#include "replay/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include <random>

#include "replay/bench.h"

namespace kerncap::replay {
namespace {

TEST(MedianInterval, contains_the_true_median_as_often_as_it_says) {
  std::mt19937 generator(1);
  std::lognormal_distribution<double> skewed(0, 0.5);  // median 1
  int covered = 0;
  constexpr int trials = 2000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> samples(31);
    for (double& s : samples) s = skewed(generator);
    const Interval interval = median_interval(samples);
    EXPECT_GE(interval.confidence, 0.95);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(covered, trials * 0.94);
  EXPECT_LE(covered, trials * 0.99);
}

TEST(MedianInterval, says_when_there_are_too_few_samples) {
  EXPECT_EQ(median_interval({}).confidence, 0);
  const std::vector<double> three{3, 1, 2};
  const Interval interval = median_interval(three);
  EXPECT_EQ(interval.value, 2);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 3);
  EXPECT_DOUBLE_EQ(interval.confidence, 0.75);  // 1 - 2 * (1/2)^3
}

TEST(MedianInterval, six_samples_are_the_fewest_for_95_percent) {
  const std::vector<double> five{1, 2, 3, 4, 5}, six{1, 2, 3, 4, 5, 6};
  EXPECT_LT(median_interval(five).confidence, 0.95);
  EXPECT_GE(median_interval(six).confidence, 0.95);
}

TEST(MedianInterval, thousands_of_samples_do_not_underflow) {
  std::vector<double> samples;
  for (int i = 0; i < 5001; ++i) samples.push_back(i);
  const Interval interval = median_interval(samples);
  EXPECT_EQ(interval.value, 2500);
  EXPECT_NEAR(interval.low, 2430, 5);  // 2500.5 - 1.96 * sqrt(5001) / 2
  EXPECT_NEAR(interval.high, 2570, 5);
}

// A kernel's time: jitter, a slow drift of the clock that both subjects share, now and then a hiccup.
struct FakeGpu {
  std::mt19937 generator;
  double factor[2] = {1, 1};
  double noise = 0.01;
  int runs = 0;
  double operator()(int which) {
    std::normal_distribution<double> jitter(0, noise);
    std::uniform_real_distribution<double> chance(0, 1);
    const double drift = 1 + 0.05 * std::sin(++runs / 100.0);
    const double hiccup = chance(generator) < 0.03 ? 1.5 : 1;
    return 1e5 * factor[which] * drift * hiccup * (1 + jitter(generator));
  }
};

Comparison benched(FakeGpu& gpu) {
  const Series series = measure_series([&](int which) { return gpu(which); }, true, {}, 3, [] { return 0.0; });
  return compare_paired(series.first, series.second, 0.01);
}

TEST(ComparePaired, the_same_kernel_twice_is_the_same_in_95_of_100) {
  int same = 0, wrong = 0;
  for (unsigned t = 0; t < 100; ++t) {
    FakeGpu gpu{std::mt19937(t)};
    const Comparison c = benched(gpu);
    same += c.answer == Answer::same;
    wrong += c.answer == Answer::faster || c.answer == Answer::slower;
  }
  EXPECT_GE(same, 95);
  EXPECT_EQ(wrong, 0);
}

TEST(ComparePaired, three_percent_are_found_in_both_directions) {
  int slower = 0, faster = 0;
  for (unsigned t = 0; t < 100; ++t) {
    FakeGpu slow{std::mt19937(t), {1, 1.03}}, fast{std::mt19937(1000 + t), {1, 0.97}};
    slower += benched(slow).answer == Answer::slower;
    faster += benched(fast).answer == Answer::faster;
  }
  EXPECT_GE(slower, 90);
  EXPECT_GE(faster, 90);
}

TEST(ComparePaired, noise_that_hides_the_answer_gives_cannot_tell) {
  FakeGpu gpu{std::mt19937(5), {1, 1.01}, 0.3};
  EXPECT_EQ(benched(gpu).answer, Answer::cannot_tell);
}

TEST(ComparePaired, one_disturbed_stretch_does_not_decide_alone) {
  std::vector<double> first(100, 100), second(100, 100.2);
  for (std::size_t i = 30; i < 90; ++i) second[i] = 96;
  EXPECT_EQ(compare_paired(first, second, 0.01).answer, Answer::cannot_tell);
}

TEST(ComparePaired, two_pairs_prove_nothing) {
  const std::vector<double> a{100, 100}, b{50, 50};
  EXPECT_EQ(compare_paired(a, b, 0.01).answer, Answer::cannot_tell);
}

TEST(ComparePaired, a_clock_without_noise_decides_at_once) {
  int runs = 0;
  const auto measure = [&](int which) {
    ++runs;
    return which == 0 ? 1000.0 : 1000.0;
  };
  const Series series = measure_series(measure, true, {}, 0, [] { return 0.0; });
  EXPECT_EQ(runs, 40);
  EXPECT_EQ(series.stopped_because, "the interval is narrow enough");
  EXPECT_EQ(compare_paired(series.first, series.second, 0.01).answer, Answer::same);
}

TEST(MeasureSeries, warm_up_runs_are_thrown_away_and_order_alternates) {
  std::vector<int> order;
  const auto measure = [&](int which) {
    order.push_back(which);
    return order.size() <= 2 ? 9e9 : 5.0;
  };
  StoppingRule rule;
  rule.minimum = rule.maximum = 2;
  const Series series = measure_series(measure, true, rule, 1, [] { return 0.0; });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 0, 1, 1, 0}));
  EXPECT_EQ(series.first, (std::vector<double>{5, 5}));
}

TEST(MeasureSeries, stops_when_the_time_is_up) {
  double now = 0;
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> wild(1, 100);
  StoppingRule rule;
  rule.seconds = 10;
  const Series series = measure_series(
      [&](int) {
        now += 1;
        return wild(generator);
      },
      false, rule, 0, [&] { return now; });
  EXPECT_EQ(series.stopped_because, "the time is up");
  EXPECT_LE(series.first.size(), 12u);
}

TEST(Outliers, are_far_above_the_upper_quartile) {
  std::vector<double> samples(20, 10);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += static_cast<double>(i % 5);
  samples[7] = 100;
  EXPECT_EQ(outliers(samples), (std::vector<std::size_t>{7}));
  EXPECT_TRUE(outliers(std::vector<double>{1, 100}).empty());
}

}  // namespace
}  // namespace kerncap::replay
