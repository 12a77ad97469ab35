#include "capture/config.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/support/error.h"

namespace kerncap::capture {
namespace {

using support::ExitCode;
using support::fail;
using support::Json;

std::uint64_t parse_number(std::string_view text, std::string_view whole) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    fail(ExitCode::usage, "'{}' is no list of dispatches; write for example 0 or 1,4 or 10-19 or 0-999:100", whole);
  return value;
}

}  // namespace

DispatchList::DispatchList(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
  if (ranges_.empty()) fail(ExitCode::usage, "the list of dispatches is empty");
  for (const Range& range : ranges_)
    if (range.step == 0 || range.last < range.first)
      fail(ExitCode::usage, "the range of dispatches {}-{}:{} is empty", range.first, range.last, range.step);
}

DispatchList DispatchList::parse(std::string_view text) {
  std::vector<Range> ranges;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    Range range;
    if (const std::size_t colon = item.find(':'); colon != std::string_view::npos) {
      range.step = parse_number(item.substr(colon + 1), text);
      item = item.substr(0, colon);
    }
    const std::size_t dash = item.find('-');
    range.first = range.last = parse_number(item.substr(0, dash), text);
    if (dash != std::string_view::npos) {
      const std::string_view last = item.substr(dash + 1);
      range.last = last.empty() ? std::numeric_limits<std::uint64_t>::max() : parse_number(last, text);
    }
    ranges.push_back(range);
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  return DispatchList(std::move(ranges));
}

ShapePattern ShapePattern::parse(std::string_view text) {
  ShapePattern pattern;
  pattern.extent = {1, 1, 1};
  std::size_t dimension = 0;
  for (std::string_view rest = text;; ++dimension) {
    const std::size_t x = rest.find('x');
    const std::string_view item = rest.substr(0, x);
    std::uint32_t value = 0;
    if (item != "*") {
      const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
      if (error != std::errc{} || end != item.data() + item.size() || value == 0) dimension = 3;
    }
    if (dimension >= 3) fail(ExitCode::usage, "'{}' is no shape; write for example 256, 64x4x1 or 1024x*x*", text);
    pattern.extent[dimension] = value;
    if (x == std::string_view::npos) return pattern;
    rest = rest.substr(x + 1);
  }
}

bool ShapePattern::matches(const std::array<std::uint32_t, 3>& shape) const {
  for (std::size_t i = 0; i < 3; ++i)
    if (extent[i] != 0 && extent[i] != shape[i]) return false;
  return true;
}

bool DispatchList::contains(std::uint64_t index) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& r) {
    return index >= r.first && index <= r.last && (index - r.first) % r.step == 0;
  });
}

bool DispatchList::finished_after(std::uint64_t index) const {
  return std::all_of(ranges_.begin(), ranges_.end(), [&](const Range& r) {
    const std::uint64_t last = r.last - (r.last - r.first) % r.step;
    return last <= index;
  });
}

support::Json to_json(const Config& c) {
  Json ranges = Json::array();
  for (const DispatchList::Range& r : c.dispatches.ranges())
    ranges.push_back({{"first", r.first}, {"last", r.last}, {"step", r.step}});
  return {{"mode", c.mode == Mode::profile ? "profile" : "capture"},
          {"status_folder", c.status_folder.string()},
          {"pattern", c.pattern},
          {"code_object", c.code_object},
          {"grid", c.grid.extent},
          {"block", c.block.extent},
          {"range", c.range},
          {"after_ms", c.after_ms},
          {"before_ms", c.before_ms},
          {"dispatches", ranges},
          {"output", c.output.string()},
          {"replace", c.replace},
          {"scope", c.reachable_only ? "reachable" : "everything"},
          {"max_bytes", c.max_bytes},
          {"drain_timeout_ms", c.drain_timeout_ms},
          {"kernel_timeout_ms", c.kernel_timeout_ms},
          {"threads", c.threads},
          {"compression_level", c.compression_level},
          {"process", c.process}};
}

Config config_from_json(const support::Json& document, std::string_view what) {
  const auto small = [&](const char* key) {
    const std::uint64_t value = support::unsigned_member(document, key, what);
    if (value > UINT32_MAX) fail(ExitCode::bad_input, "{}: '{}' is too large", what, key);
    return static_cast<unsigned>(value);
  };
  Config c;
  const std::string mode = support::string_member(document, "mode", what);
  if (mode != "capture" && mode != "profile") fail(ExitCode::bad_input, "{}: unknown mode '{}'", what, mode);
  c.mode = mode == "profile" ? Mode::profile : Mode::capture;
  c.status_folder = support::string_member(document, "status_folder", what);
  c.pattern = support::string_member(document, "pattern", what);
  c.code_object = support::string_member(document, "code_object", what);
  const auto shape = [&](const char* key) {
    const Json& array = support::array_member(document, key, what);
    ShapePattern pattern;
    if (array.size() != 3) fail(ExitCode::bad_input, "{}: '{}' has {} numbers", what, key, array.size());
    for (std::size_t i = 0; i < 3; ++i) {
      if (!array[i].is_number_unsigned()) fail(ExitCode::bad_input, "{}: '{}' holds no number", what, key);
      pattern.extent[i] = array[i].get<std::uint32_t>();
    }
    return pattern;
  };
  c.grid = shape("grid");
  c.block = shape("block");
  c.range = support::string_member(document, "range", what);
  c.after_ms = support::unsigned_member(document, "after_ms", what);
  c.before_ms = support::unsigned_member(document, "before_ms", what);
  std::vector<DispatchList::Range> ranges;
  for (const Json& range : support::array_member(document, "dispatches", what))
    ranges.push_back({support::unsigned_member(range, "first", what), support::unsigned_member(range, "last", what),
                      support::unsigned_member(range, "step", what)});
  c.dispatches = DispatchList(std::move(ranges));
  c.output = support::string_member(document, "output", what);
  c.replace = support::bool_member(document, "replace", what);
  const std::string scope = support::string_member(document, "scope", what);
  if (scope != "everything" && scope != "reachable") fail(ExitCode::bad_input, "{}: unknown scope '{}'", what, scope);
  c.reachable_only = scope == "reachable";
  c.max_bytes = support::unsigned_member(document, "max_bytes", what);
  c.drain_timeout_ms = small("drain_timeout_ms");
  c.kernel_timeout_ms = small("kernel_timeout_ms");
  c.threads = small("threads");
  c.compression_level = static_cast<int>(std::min(small("compression_level"), 22u));
  c.process = support::string_member(document, "process", what);
  if (!c.status_folder.is_absolute()) fail(ExitCode::bad_input, "{}: 'status_folder' is not an absolute path", what);
  if (c.mode == Mode::capture && (c.pattern.empty() || !c.output.is_absolute()))
    fail(ExitCode::bad_input, "{}: a capture needs a pattern and an absolute output path", what);
  return c;
}

}  // namespace kerncap::capture
