#include "common/random.h"
#include "spmv/matrix.h"

namespace spmv {

CsrMatrix make_graph(int pages, int links_per_page, std::uint64_t seed) {
  common::Random random(seed);
  struct Link {
    int from;
    float weight;
  };
  std::vector<std::vector<Link>> incoming(pages);
  for (int from = 0; from < pages; ++from) {
    const int links = 1 + static_cast<int>(random.below(2 * links_per_page - 1));
    for (int i = 0; i < links; ++i) {
      // The fourth power of a uniform number favours the first pages.
      double target = random.uniform(0, 1);
      target *= target;
      target *= target;
      incoming[static_cast<int>(target * pages)].push_back({from, 1.0f / static_cast<float>(links)});
    }
  }

  CsrMatrix matrix;
  matrix.rows = pages;
  matrix.offsets.push_back(0);
  for (const std::vector<Link>& row : incoming) {
    for (const Link& link : row) {
      matrix.columns.push_back(link.from);
      matrix.values.push_back(link.weight);
    }
    matrix.offsets.push_back(static_cast<int>(matrix.columns.size()));
  }
  return matrix;
}

}  // namespace spmv
