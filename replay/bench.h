// When to measure what, and when to stop: the timing loop over anything that can be timed. Pure but for its callbacks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "replay/statistics.h"

namespace kerncap::replay {

struct Series {
  std::vector<double> first, second;  // second stays empty without a second subject
  std::string stopped_because;
};

// `measure(which)` times subject 0 or 1 once, in nanoseconds; `elapsed()` gives seconds since the start. Warm-up runs
// are made first and thrown away. Pairs alternate their order (0 1, 1 0, ...), so that neither subject always runs in
// the other's wake. Whether to stop is decided by how narrow the interval is, never by which answer it gives.
Series measure_series(const std::function<double(int which)>& measure, bool paired, const StoppingRule& rule,
                      unsigned warm_up, const std::function<double()>& elapsed);

}  // namespace kerncap::replay
