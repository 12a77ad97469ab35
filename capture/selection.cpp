#include "capture/selection.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "capture/ranges.h"

namespace kerncap::capture {
namespace {

constexpr std::size_t most_shapes = 16;

// Of libkerncap-ranges.so, when it was preloaded.
const RangeSource* preloaded() {
  static const auto* const source = static_cast<const RangeSource*>(::dlsym(RTLD_DEFAULT, range_source_entry));
  return source;
}

bool in_wanted_range() { return (preloaded() != nullptr && preloaded()->inside()) || ranges().inside(); }

std::vector<std::string> range_names() {
  std::vector<std::string> names = ranges().names();
  if (preloaded() == nullptr) return names;
  std::vector<char> lines(16384);
  lines.resize(preloaded()->names(lines.data(), lines.size()));
  for (auto begin = lines.begin(); begin != lines.end();) {
    const auto end = std::find(begin, lines.end(), '\n');
    std::string name(begin, end);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    begin = end == lines.end() ? end : end + 1;
  }
  return names;
}

}  // namespace

Selection::Selection(const Config& config) : config_(config) {
  if (!config.range.empty()) {
    ranges().watch(config.range);
    preloaded();
  }
}

bool Selection::accepts(const hsa_kernel_dispatch_packet_t& p) {
  const std::array<std::uint32_t, 3> grid{p.grid_size_x, p.grid_size_y, p.grid_size_z};
  const std::array<std::uint32_t, 3> block{p.workgroup_size_x, p.workgroup_size_y, p.workgroup_size_z};
  if (!config_.grid.matches(grid) || !config_.block.matches(block)) {
    ++by_shape_;
    KernelStatus::Shape shape;
    std::copy(grid.begin(), grid.end(), shape.grid);
    std::copy(block.begin(), block.end(), shape.workgroup);
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& s) {
      return std::equal(s.grid, s.grid + 3, shape.grid) && std::equal(s.workgroup, s.workgroup + 3, shape.workgroup);
    });
    if (known != shapes_.end()) {
      ++known->dispatches;
    } else if (shapes_.size() < most_shapes) {
      shape.dispatches = 1;
      shapes_.push_back(shape);
    }
    return false;
  }
  if (!config_.range.empty() && !in_wanted_range()) {
    ++by_range_;
    return false;
  }
  if (config_.after_ms != 0 || config_.before_ms != 0) {
    const auto now =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_).count();
    const auto ms = static_cast<std::uint64_t>(now);
    if (ms < config_.after_ms || (config_.before_ms != 0 && ms >= config_.before_ms)) {
      ++by_time_;
      return false;
    }
  }
  return true;
}

void Selection::fill(Status& status) const {
  status.refused.by_shape = by_shape_;
  status.refused.by_range = by_range_;
  status.refused.by_time = by_time_;
  if (!config_.range.empty()) status.refused.ranges = range_names();
  const std::lock_guard lock(mutex_);
  status.refused.shapes = shapes_;
}

}  // namespace kerncap::capture
