#include <algorithm>
#include <type_traits>

#include "common/random.h"
#include "matmul/problem.h"

namespace matmul {

template <typename In>
Problem<In> make_problem(const Shape& shape, std::uint64_t seed) {
  common::Random random(seed);
  const auto next = [&] {
    if constexpr (std::is_integral_v<In>) {
      return static_cast<In>(static_cast<int>(random.below(255)) - 127);
    } else {
      return static_cast<In>(random.uniform(-1, 1));
    }
  };
  Problem<In> problem;
  problem.shape = shape;
  problem.a.resize(static_cast<std::size_t>(shape.m) * shape.k);
  problem.b.resize(static_cast<std::size_t>(shape.k) * shape.n);
  std::generate(problem.a.begin(), problem.a.end(), next);
  std::generate(problem.b.begin(), problem.b.end(), next);
  return problem;
}

template <typename In, typename Out>
std::vector<Out> reference_product(const Problem<In>& problem) {
  using Sum = std::conditional_t<std::is_integral_v<Out>, std::int64_t, double>;
  const auto [m, n, k] = problem.shape;
  std::vector<Out> c(static_cast<std::size_t>(m) * n);
  std::vector<Sum> row(n);
  for (int i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), Sum(0));
    for (int l = 0; l < k; ++l) {
      const Sum a = problem.a[static_cast<std::size_t>(i) * k + l];
      for (int j = 0; j < n; ++j) row[j] += a * static_cast<Sum>(problem.b[static_cast<std::size_t>(l) * n + j]);
    }
    for (int j = 0; j < n; ++j) c[static_cast<std::size_t>(i) * n + j] = static_cast<Out>(row[j]);
  }
  return c;
}

std::vector<float> reference_bias_relu(const Problem<float>& problem, const std::vector<float>& bias) {
  std::vector<float> c = reference_product<float, float>(problem);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = std::max(0.0f, c[i] + bias[i % bias.size()]);
  return c;
}

template Problem<float> make_problem(const Shape&, std::uint64_t);
template Problem<double> make_problem(const Shape&, std::uint64_t);
template Problem<std::int8_t> make_problem(const Shape&, std::uint64_t);
template std::vector<float> reference_product(const Problem<float>&);
template std::vector<double> reference_product(const Problem<double>&);
template std::vector<std::int32_t> reference_product(const Problem<std::int8_t>&);

}  // namespace matmul
