#include "replay/bench.h"

namespace kerncap::replay {

Series measure_series(const std::function<double(int which)>& measure, bool paired, const StoppingRule& rule,
                      unsigned warm_up, const std::function<double()>& elapsed) {
  Series series;
  for (unsigned i = 0; i < warm_up; ++i) {
    measure(0);
    if (paired) measure(1);
  }
  std::vector<double> ratios;
  for (std::uint64_t i = 0;; ++i) {
    if (i >= rule.maximum) {
      series.stopped_because = "the most samples allowed";
      break;
    }
    if (i >= rule.minimum) {
      const Interval interval = median_interval(paired ? ratios : series.first);
      if (interval.confidence >= 0.95 && interval.relative_width() <= rule.relative_width) {
        series.stopped_because = "the interval is narrow enough";
        break;
      }
    }
    if (i >= 1 && elapsed() > rule.seconds) {
      series.stopped_because = "the time is up";
      break;
    }
    if (!paired) {
      series.first.push_back(measure(0));
      continue;
    }
    const int leader = static_cast<int>(i % 2);
    const double a = measure(leader), b = measure(1 - leader);
    series.first.push_back(leader == 0 ? a : b);
    series.second.push_back(leader == 0 ? b : a);
    if (series.first.back() > 0) ratios.push_back(series.second.back() / series.first.back());
  }
  return series;
}

}  // namespace kerncap::replay
