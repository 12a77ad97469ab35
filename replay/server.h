// `kerncap serve`: candidates from a program that writes kernels, one JSON object a line. docs/protocol.md has the
// messages, the error codes and a worked session.
#pragma once

#include <cstddef>

#include "replay/options.h"

namespace kerncap::replay {

struct ServeLimits {
  std::size_t line_bytes = std::size_t{16} << 20;  // of a request
  std::size_t candidates = 64;                     // kept; the oldest is forgotten
  double compile_seconds = 300, run_seconds = 600, bench_seconds = 600;
  std::uint64_t iterations = 10'000;
};

// Reads requests from `in` and answers on `out` (file descriptors) until shutdown or the end of input; returns the exit
// code. Answers come in the order of the requests. What a candidate does never ends the server.
int serve(const Options& options, int in, int out, const ServeLimits& limits = {});

}  // namespace kerncap::replay
