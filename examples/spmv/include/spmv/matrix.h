#pragma once

#include <cstdint>
#include <vector>

namespace spmv {

// Compressed sparse rows: the entries of row r are [offsets[r], offsets[r + 1]).
struct CsrMatrix {
  int rows = 0;
  std::vector<int> offsets;
  std::vector<int> columns;
  std::vector<float> values;
};

// The transition matrix of a random directed graph: entry (to, from) is 1 / links that leave `from`. A few pages
// attract most of the links, so that some rows are very long.
CsrMatrix make_graph(int pages, int links_per_page, std::uint64_t seed);

// rank = damping * matrix * rank + (1 - damping) / pages, `iterations` times from equal ranks. In double precision.
std::vector<double> reference_page_rank(const CsrMatrix& matrix, double damping, int iterations);

}  // namespace spmv
