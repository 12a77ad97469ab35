// Spreading independent pieces of work over a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace kerncap::replay {

// Calls work(0) ... work(count - 1), each once, from up to `threads` threads (0: the machine's cores, at most 8);
// returns when all are done. The first exception is thrown again here; work not yet begun is then left out.
void for_each_parallel(std::size_t count, const std::function<void(std::size_t)>& work, unsigned threads = 0);

}  // namespace kerncap::replay
