#pragma once

#include <cstdint>
#include <vector>

namespace matmul {

// C = A B with row-major A (m x k), B (k x n) and C (m x n).
struct Shape {
  int m = 120;
  int n = 136;
  int k = 100;
};

template <typename In>
struct Problem {
  Shape shape;
  std::vector<In> a;
  std::vector<In> b;
};

template <typename In>
Problem<In> make_problem(const Shape& shape, std::uint64_t seed);

// The product in `Out`'s precision or better, without tiles.
template <typename In, typename Out>
std::vector<Out> reference_product(const Problem<In>& problem);

// max(0, c + bias of the column).
std::vector<float> reference_bias_relu(const Problem<float>& problem, const std::vector<float>& bias);

}  // namespace matmul
