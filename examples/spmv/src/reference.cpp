#include "spmv/matrix.h"

namespace spmv {

std::vector<double> reference_page_rank(const CsrMatrix& matrix, double damping, int iterations) {
  std::vector<double> rank(matrix.rows, 1.0 / matrix.rows);
  std::vector<double> next(matrix.rows);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int row = 0; row < matrix.rows; ++row) {
      double sum = 0;
      for (int i = matrix.offsets[row]; i < matrix.offsets[row + 1]; ++i) {
        sum += static_cast<double>(matrix.values[i]) * rank[matrix.columns[i]];
      }
      next[row] = damping * sum + (1 - damping) / matrix.rows;
    }
    rank.swap(next);
  }
  return rank;
}

}  // namespace spmv
