#include "replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <kainjow/mustache.hpp>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::replay {
namespace {

using kainjow::mustache::data;
using support::ExitCode;
using support::fail;

// The plot's area, in the units of the template's viewBox.
constexpr double left = 70, right = 780, top = 20, bottom = 280;

// Bytes that are no UTF-8, and control characters that no document may hold, become the replacement character.
std::string clean(const std::string& text) {
  const std::string dumped = support::Json(text).dump(-1, ' ', false, support::Json::error_handler_t::replace);
  const auto valid = support::Json::parse(dumped).get<std::string>();
  std::string result;
  for (const char c : valid) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      result += "\xef\xbf\xbd";
    } else {
      result += c;
    }
  }
  return result;
}

// Every text of the page goes through here or is a number of ours.
data row(std::initializer_list<std::pair<const char*, std::string>> members) {
  data object(data::type::object);
  for (const auto& [name, text] : members) object.set(name, data(clean(text)));
  return object;
}

data flag(bool value) { return data(value ? data::type::bool_true : data::type::bool_false); }

std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} µs", ns / 1e3);
  return ns < 1e9 ? fmt::format("{:.3f} ms", ns / 1e6) : fmt::format("{:.3f} s", ns / 1e9);
}

data plot(const BenchResult& bench) {
  std::vector<std::pair<const Timing*, const char*>> series{{&bench.first, "first"}};
  if (bench.second) series.emplace_back(&*bench.second, "second");
  double low = HUGE_VAL, high = 0;
  std::size_t longest = 1;
  for (const auto& [timing, name] : series) {
    longest = std::max(longest, timing->samples.size());
    for (const double sample : timing->samples) {
      if (!std::isfinite(sample)) continue;
      low = std::min(low, sample);
      high = std::max(high, sample);
    }
  }
  if (!(low <= high)) low = high = 0;
  const double margin = std::max((high - low) * 0.05, std::max(high * 0.001, 1.0));
  low = std::max(0.0, low - margin);
  high += margin;
  const auto y = [&](double ns) { return bottom - (std::clamp(ns, low, high) - low) / (high - low) * (bottom - top); };
  data result = row({{"caches", bench.caches}, {"clock", bench.clock}, {"stopped_because", bench.stopped_because}});
  data ticks(data::type::list), bands(data::type::list), points(data::type::list), timings(data::type::list);
  for (int i = 0; i <= 4; ++i) {
    const double ns = low + (high - low) * i / 4;
    ticks << row({{"y", fmt::format("{:.1f}", y(ns) + 4)}, {"text", time_text(ns)}});
  }
  for (const auto& [timing, name] : series) {
    const Interval& m = timing->median;
    bands << row({{"series", name},
                  {"y", fmt::format("{:.1f}", y(m.high))},
                  {"height", fmt::format("{:.1f}", std::max(1.0, y(m.low) - y(m.high)))},
                  {"median", fmt::format("{:.1f}", y(m.value))}});
    const std::vector<std::size_t> far = outliers(timing->samples);
    for (std::size_t i = 0; i < timing->samples.size(); ++i) {
      const bool is_far = std::binary_search(far.begin(), far.end(), i);
      points << row({{"series", name},
                     {"far", is_far ? " far" : ""},
                     {"r", is_far ? "5" : "2.5"},
                     {"x", fmt::format("{:.1f}", left + (right - left) * (static_cast<double>(i) + 0.5) /
                                                            static_cast<double>(longest))},
                     {"y", fmt::format("{:.1f}", y(timing->samples[i]))},
                     {"title", fmt::format("{}, sample {}: {}", timing->label, i, time_text(timing->samples[i]))}});
    }
    timings << row({{"series", name},
                    {"label", timing->label},
                    {"median", time_text(m.value)},
                    {"low", time_text(m.low)},
                    {"high", time_text(m.high)},
                    {"confidence", fmt::format("{:.0f}", 100 * m.confidence)},
                    {"samples", std::to_string(timing->samples.size())},
                    {"remarks", outlier_text(*timing)}});
  }
  result.set("ticks", ticks);
  result.set("bands", bands);
  result.set("points", points);
  result.set("timings", timings);
  if (bench.comparison) {
    const Comparison& c = *bench.comparison;
    result.set("comparison", row({{"answer", to_string(c.answer)},
                                  {"ratio", fmt::format("{:.4f}", c.ratio.value)},
                                  {"low", fmt::format("{:.4f}", c.ratio.low)},
                                  {"high", fmt::format("{:.4f}", c.ratio.high)}}));
  }
  return result;
}

data part_row(const Part& part) {
  const Statistics& s = part.statistics;
  constexpr double width = 120;
  const auto share = [&](std::uint64_t count) {
    if (count == 0 || s.elements == 0) return std::string("0");
    // Few among many must not be invisible.
    return fmt::format("{:.1f}", std::max(2.0, width * static_cast<double>(count) / static_cast<double>(s.elements)));
  };
  return row({{"what", part.what},
              {"address", support::hex_string(part.address)},
              {"type", part.type},
              {"elements", std::to_string(s.elements)},
              {"differing", std::to_string(s.differing)},
              {"outside", std::to_string(s.outside)},
              {"error", s.max_absolute == 0 ? std::string() : fmt::format("{:.4g}", s.max_absolute)},
              {"differing_width", share(s.differing)},
              {"outside_width", share(s.outside)}});
}

}  // namespace

std::string html_report(const Verdict& v, const std::filesystem::path& template_file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(template_file, ignored)) {
    fail(ExitCode::environment, "the report's template '{}' is missing; the installation of Kerncap is incomplete",
         template_file.string());
  }
  data page = row({{"outcome", to_string(v.outcome)},
                   {"colour", exit_code(v.outcome) == ExitCode::done           ? "yes"
                              : exit_code(v.outcome) == ExitCode::answer_is_no ? "no"
                                                                               : "other"},
                   {"kernel", v.kernel.empty() ? "(unknown kernel)" : v.kernel},
                   {"sentence", v.sentence},
                   {"code_object", v.code_object},
                   {"agent", v.agent},
                   {"compared_bytes", std::to_string(v.compared_bytes)},
                   {"runs", std::to_string(v.runs)}});
  if (v.first) {
    const FirstDifference& f = *v.first;
    page.set("first_difference", row({{"what", f.what},
                                      {"element", std::to_string(f.element)},
                                      {"type", f.type},
                                      {"address", support::hex_string(f.address)},
                                      {"region", support::hex_string(f.region_address)},
                                      {"region_kind", f.region_kind},
                                      {"expected", f.expected},
                                      {"actual", f.actual}}));
  }
  if (v.bench) page.set("plot", plot(*v.bench));
  data parts(data::type::list), skipped(data::type::list), arguments(data::type::list), notes(data::type::list);
  for (const Part& part : v.parts) parts << part_row(part);
  for (const Skipped& s : v.skipped) {
    skipped << row(
        {{"address", support::hex_string(s.address)}, {"size", std::to_string(s.size)}, {"reason", s.reason}});
  }
  for (const KernelArgument& a : v.arguments) {
    arguments << row({{"index", std::to_string(a.index)},
                      {"name", a.name},
                      {"type", a.type},
                      {"offset", std::to_string(a.offset)},
                      {"size", std::to_string(a.size)},
                      {"value", a.value}});
  }
  for (const std::string& note : v.notes) notes << row({{"text", note}});
  page.set("parts", parts);
  page.set("no_parts", flag(v.parts.empty()));
  page.set("any_skipped", flag(!v.skipped.empty()));
  page.set("skipped", skipped);
  page.set("arguments", arguments);
  page.set("any_notes", flag(!v.notes.empty()));
  page.set("notes", notes);
  kainjow::mustache::mustache engine(support::read_text_file(template_file, 1 << 22));
  std::string text = engine.is_valid() ? engine.render(page) : std::string();
  if (!engine.is_valid() || !engine.error_message().empty()) {
    fail(ExitCode::environment, "the report's template '{}' is malformed: {}", template_file.string(),
         engine.error_message());
  }
  return text;
}

}  // namespace kerncap::replay
