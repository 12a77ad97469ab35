#include "capture/status.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/support/error.h"

namespace kerncap::capture {
namespace {

using support::ExitCode;
using support::fail;
using support::Json;

constexpr std::pair<StatusState, const char*> state_names[] = {
    {StatusState::armed, "armed"},   {StatusState::capturing, "capturing"}, {StatusState::captured, "captured"},
    {StatusState::failed, "failed"}, {StatusState::passive, "passive"},     {StatusState::profiled, "profiled"},
};

// The numbers of a kernel that are alike: written and read by one table.
template <typename Kernel>
auto kernel_numbers(Kernel& k) {
  return std::array{std::pair{"dispatches", &k.dispatches}, std::pair{"timed", &k.timed},
                    std::pair{"total_ns", &k.total_ns},     std::pair{"minimum_ns", &k.minimum_ns},
                    std::pair{"maximum_ns", &k.maximum_ns}, std::pair{"slowest", &k.slowest}};
}
template <typename Kernel>
auto kernel_resources(Kernel& k) {
  return std::array{std::pair{"sgprs", &k.sgprs}, std::pair{"vgprs", &k.vgprs}, std::pair{"agprs", &k.agprs},
                    std::pair{"group_segment_size", &k.group_segment_size},
                    std::pair{"private_segment_size", &k.private_segment_size}};
}

Json write(const std::vector<KernelStatus::Shape>& all) {
  Json shapes = Json::array();
  for (const auto& s : all)
    shapes.push_back({{"grid", s.grid}, {"workgroup", s.workgroup}, {"dispatches", s.dispatches}});
  return shapes;
}

Json write(const KernelStatus& k) {
  Json out = {{"symbol", k.symbol}, {"demangled", k.demangled}, {"code_object", k.code_object}, {"matches", k.matches}};
  for (const auto& [key, value] : kernel_numbers(k)) out[key] = *value;
  for (const auto& [key, value] : kernel_resources(k)) out[key] = *value;
  out["shapes"] = write(k.shapes);
  Json times = Json::array();
  for (const auto& t : k.dispatch_times) times.push_back({t.kernel_index, t.index, t.nanoseconds});
  out["dispatch_times"] = times;
  return out;
}

std::uint64_t number(const Json& value, std::string_view what) {
  if (!value.is_number_unsigned()) fail(ExitCode::bad_input, "{}: something is not a number", what);
  return value.get<std::uint64_t>();
}

void read_three(const Json& object, const char* key, std::uint32_t (&out)[3], std::string_view what) {
  const Json& array = support::array_member(object, key, what);
  if (array.size() != 3) fail(ExitCode::bad_input, "{}: '{}' has {} numbers", what, key, array.size());
  for (std::size_t i = 0; i < 3; ++i) out[i] = static_cast<std::uint32_t>(number(array[i], what));
}

std::vector<KernelStatus::Shape> read_shapes(const Json& o, std::string_view what) {
  std::vector<KernelStatus::Shape> out;
  for (const Json& item : support::array_member(o, "shapes", what)) {
    KernelStatus::Shape shape;
    read_three(item, "grid", shape.grid, what);
    read_three(item, "workgroup", shape.workgroup, what);
    shape.dispatches = support::unsigned_member(item, "dispatches", what);
    out.push_back(shape);
  }
  return out;
}

KernelStatus read_kernel(const Json& o, std::string_view what) {
  KernelStatus k;
  k.symbol = support::string_member(o, "symbol", what);
  k.demangled = support::string_member(o, "demangled", what);
  k.code_object = support::string_member(o, "code_object", what);
  k.matches = support::bool_member(o, "matches", what);
  for (const auto& [key, value] : kernel_numbers(k)) *value = support::unsigned_member(o, key, what);
  for (const auto& [key, value] : kernel_resources(k))
    *value = static_cast<std::uint32_t>(support::unsigned_member(o, key, what));
  k.shapes = read_shapes(o, what);
  for (const Json& item : support::array_member(o, "dispatch_times", what)) {
    if (!item.is_array() || item.size() != 3) fail(ExitCode::bad_input, "{}: 'dispatch_times' is damaged", what);
    k.dispatch_times.push_back({number(item[0], what), number(item[1], what), number(item[2], what)});
  }
  return k;
}

std::vector<std::string> texts(const Json& o, const char* key, std::string_view what) {
  std::vector<std::string> out;
  for (const Json& item : support::array_member(o, key, what)) {
    if (!item.is_string()) fail(ExitCode::bad_input, "{}: '{}' holds something that is not text", what, key);
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace

const char* to_string(StatusState state) {
  for (const auto& [value, name] : state_names)
    if (value == state) return name;
  return "unknown";
}

support::Json to_json(const Status& s) {
  Json out = {{"process", s.process},         {"command_line", s.command_line},
              {"state", to_string(s.state)},  {"reason", s.reason},
              {"ambiguous", s.ambiguous},     {"snapshot", s.snapshot},
              {"captured", s.captured},       {"bytes_done", s.bytes_done},
              {"bytes_total", s.bytes_total}, {"stored_bytes", s.stored_bytes},
              {"held_ns", s.held_ns},         {"notes", s.notes}};
  out["refused"] = {{"by_shape", s.refused.by_shape},
                    {"by_range", s.refused.by_range},
                    {"by_time", s.refused.by_time},
                    {"shapes", write(s.refused.shapes)},
                    {"ranges", s.refused.ranges}};
  Json kernels = Json::array();
  for (const KernelStatus& k : s.kernels) kernels.push_back(write(k));
  out["kernels"] = kernels;
  return out;
}

Status status_from_json(const support::Json& o, std::string_view what) {
  Status s;
  s.process = support::unsigned_member(o, "process", what);
  s.command_line = texts(o, "command_line", what);
  const std::string state = support::string_member(o, "state", what);
  const auto* found =
      std::find_if(std::begin(state_names), std::end(state_names), [&](const auto& n) { return state == n.second; });
  if (found == std::end(state_names)) fail(ExitCode::bad_input, "{}: unknown state '{}'", what, state);
  s.state = found->first;
  s.reason = support::string_member(o, "reason", what);
  s.ambiguous = support::bool_member(o, "ambiguous", what);
  s.snapshot = support::string_member(o, "snapshot", what);
  for (const Json& item : support::array_member(o, "captured", what)) s.captured.push_back(number(item, what));
  s.bytes_done = support::unsigned_member(o, "bytes_done", what);
  s.bytes_total = support::unsigned_member(o, "bytes_total", what);
  s.stored_bytes = support::unsigned_member(o, "stored_bytes", what);
  s.held_ns = support::unsigned_member(o, "held_ns", what);
  s.notes = texts(o, "notes", what);
  const auto found_refused = o.find("refused");
  if (found_refused == o.end() || !found_refused->is_object())
    fail(ExitCode::bad_input, "{}: 'refused' is missing", what);
  const Json& refused = *found_refused;
  s.refused.by_shape = support::unsigned_member(refused, "by_shape", what);
  s.refused.by_range = support::unsigned_member(refused, "by_range", what);
  s.refused.by_time = support::unsigned_member(refused, "by_time", what);
  s.refused.shapes = read_shapes(refused, what);
  s.refused.ranges = texts(refused, "ranges", what);
  for (const Json& item : support::array_member(o, "kernels", what)) s.kernels.push_back(read_kernel(item, what));
  return s;
}

std::vector<Status> read_statuses(const std::filesystem::path& folder) {
  std::vector<Status> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("status-") || !name.ends_with(".json")) continue;
    try {
      out.push_back(status_from_json(support::read_json_file(entry.path()), entry.path().string()));
    } catch (const support::Error&) {
      // A process that was killed while the folder was full: its state is unknown, as if it had written none.
    }
  }
  return out;
}

}  // namespace kerncap::capture
