#include "replay/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kerncap::replay {
namespace {

using support::Json;

struct OutcomeRow {
  Outcome outcome;
  const char* name;
  support::ExitCode code;
};

constexpr std::array outcome_rows{
    OutcomeRow{Outcome::matches, "matches", support::ExitCode::done},
    OutcomeRow{Outcome::differs, "differs", support::ExitCode::answer_is_no},
    OutcomeRow{Outcome::ran, "ran", support::ExitCode::done},
    OutcomeRow{Outcome::fault, "fault", support::ExitCode::answer_is_no},
    OutcomeRow{Outcome::hang, "hang", support::ExitCode::answer_is_no},
    OutcomeRow{Outcome::refused, "refused", support::ExitCode::environment},
    OutcomeRow{Outcome::bad_input, "bad input", support::ExitCode::bad_input},
};

constexpr const char* verdict_schema = "kerncap.verdict/1";

// JSON has no infinity and no NaN: such numbers travel as text.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

double number_from(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (text == "inf") return HUGE_VAL;
    if (text == "-inf") return -HUGE_VAL;
    return std::nan("");
  }
  support::fail(support::ExitCode::bad_input, "the verdict holds something that should be a number");
}

Json to_json(const Tolerance& t) {
  return {{"absolute", t.absolute}, {"relative", t.relative}, {"ulps", t.ulps}, {"nan", to_string(t.nan)}};
}

Tolerance tolerance_from(const Json& j) {
  return {number_from(j.at("absolute")), number_from(j.at("relative")), j.at("ulps").get<std::uint64_t>(),
          nan_policy(j.at("nan").get<std::string>()).value_or(NanPolicy::equal)};
}

Json to_json(const Part& part) {
  const Statistics& s = part.statistics;
  Json j{{"what", part.what},
         {"argument", part.argument},
         {"type", part.type},
         {"address", support::hex_string(part.address)},
         {"size", part.size},
         {"tolerance", to_json(part.tolerance)},
         {"elements", s.elements},
         {"differing", s.differing},
         {"outside_tolerance", s.outside},
         {"max_absolute_error", number(s.max_absolute)},
         {"max_relative_error", number(s.max_relative)},
         {"max_ulps", s.max_ulps},
         {"unexpected_nans", s.nans}};
  if (s.first) {
    j["first"] = {{"offset", s.first->offset}, {"expected", s.first->expected}, {"actual", s.first->actual}};
  }
  return j;
}

Part part_from(const Json& j) {
  Part part;
  part.what = j.at("what").get<std::string>();
  part.argument = j.at("argument").get<int>();
  part.type = j.at("type").get<std::string>();
  part.address = support::unsigned_member(j, "address", "the verdict");
  part.size = j.at("size").get<std::uint64_t>();
  part.tolerance = tolerance_from(j.at("tolerance"));
  Statistics& s = part.statistics;
  s.elements = j.at("elements").get<std::uint64_t>();
  s.differing = j.at("differing").get<std::uint64_t>();
  s.outside = j.at("outside_tolerance").get<std::uint64_t>();
  s.max_absolute = number_from(j.at("max_absolute_error"));
  s.max_relative = number_from(j.at("max_relative_error"));
  s.max_ulps = j.at("max_ulps").get<std::uint64_t>();
  s.nans = j.at("unexpected_nans").get<std::uint64_t>();
  if (j.contains("first")) {
    const Json& f = j.at("first");
    s.first = Difference{f.at("offset").get<std::uint64_t>(), f.at("expected").get<std::string>(),
                         f.at("actual").get<std::string>()};
  }
  return part;
}

Json to_json(const Interval& i) {
  return {{"value", number(i.value)}, {"low", number(i.low)}, {"high", number(i.high)}, {"confidence", i.confidence}};
}

Interval interval_from(const Json& j) {
  return {number_from(j.at("value")), number_from(j.at("low")), number_from(j.at("high")),
          number_from(j.at("confidence"))};
}

Json to_json(const Timing& t) {
  Json j{{"label", t.label},
         {"median_ns", to_json(t.median)},
         {"samples_ns", t.samples},
         {"outliers", outliers(t.samples)},
         {"results_checked", t.results_checked}};
  if (!t.clocks.empty()) j["clock_hz"] = t.clocks;
  return j;
}

Timing timing_from(const Json& j) {
  return {j.at("label").get<std::string>(), j.at("samples_ns").get<std::vector<double>>(),
          interval_from(j.at("median_ns")), j.at("results_checked").get<bool>(),
          j.value("clock_hz", std::vector<double>{})};
}

Json to_json(const BenchResult& b) {
  Json j{{"caches", b.caches}, {"clock", b.clock}, {"stopped_because", b.stopped_because}, {"first", to_json(b.first)}};
  if (b.second) j["second"] = to_json(*b.second);
  if (b.comparison) {
    j["comparison"] = {{"answer", to_string(b.comparison->answer)},
                       {"ratio", to_json(b.comparison->ratio)},
                       {"threshold", b.comparison->threshold}};
  }
  return j;
}

BenchResult bench_from(const Json& j) {
  BenchResult b;
  b.caches = j.at("caches").get<std::string>();
  b.clock = j.at("clock").get<std::string>();
  b.stopped_because = j.at("stopped_because").get<std::string>();
  b.first = timing_from(j.at("first"));
  if (j.contains("second")) b.second = timing_from(j.at("second"));
  if (j.contains("comparison")) {
    const Json& c = j.at("comparison");
    Comparison comparison;
    const auto name = c.at("answer").get<std::string>();
    for (const Answer answer : {Answer::faster, Answer::slower, Answer::same, Answer::cannot_tell}) {
      if (name == to_string(answer)) comparison.answer = answer;
    }
    comparison.ratio = interval_from(c.at("ratio"));
    comparison.threshold = number_from(c.at("threshold"));
    b.comparison = comparison;
  }
  return b;
}

std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string interval_text(const Interval& i) {
  if (i.low == i.high) return time_text(i.value);
  return fmt::format("{} [{}, {}] at {:.0f} %", time_text(i.value), time_text(i.low), time_text(i.high),
                     i.confidence * 100);
}

}  // namespace

const char* to_string(Outcome outcome) { return outcome_rows[static_cast<std::size_t>(outcome)].name; }
support::ExitCode exit_code(Outcome outcome) { return outcome_rows[static_cast<std::size_t>(outcome)].code; }

Json to_json(const Verdict& v) {
  Json j{{"schema", verdict_schema},
         {"outcome", to_string(v.outcome)},
         {"sentence", v.sentence},
         {"kernel", v.kernel},
         {"code_object", v.code_object},
         {"agent", v.agent},
         {"dispatch", v.dispatch},
         {"runs", v.runs},
         {"compared_bytes", v.compared_bytes}};
  if (v.first) {
    const FirstDifference& f = *v.first;
    j["first_difference"] = {{"address", support::hex_string(f.address)},
                             {"region", support::hex_string(f.region_address)},
                             {"region_kind", f.region_kind},
                             {"argument", f.argument},
                             {"what", f.what},
                             {"element", f.element},
                             {"type", f.type},
                             {"expected", f.expected},
                             {"actual", f.actual}};
  }
  j["parts"] = Json::array();
  for (const Part& part : v.parts) j["parts"].push_back(to_json(part));
  j["skipped"] = Json::array();
  for (const Skipped& s : v.skipped) {
    j["skipped"].push_back({{"address", support::hex_string(s.address)}, {"size", s.size}, {"reason", s.reason}});
  }
  if (!v.arguments.empty()) {
    j["arguments"] = Json::array();
    for (const KernelArgument& a : v.arguments) {
      Json row{{"index", a.index},   {"name", a.name}, {"type", a.type},
               {"offset", a.offset}, {"size", a.size}, {"value", a.value}};
      if (a.pointer) row["pointer"] = support::hex_string(*a.pointer);
      j["arguments"].push_back(std::move(row));
    }
  }
  if (v.restore) {
    j["restore"] = {{"all_bytes", v.restore->all_bytes},
                    {"all_ns", v.restore->all_ns},
                    {"bytes", v.restore->bytes},
                    {"ns", v.restore->ns}};
  }
  j["notes"] = v.notes;
  j["device_times_ns"] = v.device_times;
  if (v.bench) j["bench"] = to_json(*v.bench);
  return j;
}

std::vector<KernelArgument> arguments_from_json(const Json& list) {
  std::vector<KernelArgument> result;
  for (const Json& row : list) {
    KernelArgument& a = result.emplace_back();
    a.index = row.at("index").get<int>();
    a.name = row.at("name").get<std::string>();
    a.type = row.at("type").get<std::string>();
    a.offset = row.at("offset").get<std::uint32_t>();
    a.size = row.at("size").get<std::uint32_t>();
    a.value = row.at("value").get<std::string>();
    if (row.contains("pointer")) a.pointer = support::unsigned_member(row, "pointer", "an argument");
  }
  return result;
}

Verdict verdict_from_json(const Json& document) {
  constexpr const char* what = "the replayer's verdict";
  if (support::string_member(document, "schema", what) != verdict_schema) {
    support::fail(support::ExitCode::bad_input, "{} has an unknown schema; replayer and command line differ in version",
                  what);
  }
  try {
    Verdict v;
    const std::string name = document.at("outcome").get<std::string>();
    const auto row =
        std::find_if(outcome_rows.begin(), outcome_rows.end(), [&](const OutcomeRow& r) { return name == r.name; });
    if (row == outcome_rows.end()) support::fail(support::ExitCode::bad_input, "{}: unknown outcome '{}'", what, name);
    v.outcome = row->outcome;
    v.sentence = document.at("sentence").get<std::string>();
    v.kernel = document.at("kernel").get<std::string>();
    v.code_object = document.at("code_object").get<std::string>();
    v.agent = document.at("agent").get<std::string>();
    v.dispatch = document.at("dispatch").get<std::uint64_t>();
    v.runs = document.at("runs").get<std::uint64_t>();
    v.compared_bytes = document.at("compared_bytes").get<std::uint64_t>();
    if (document.contains("first_difference")) {
      const Json& f = document.at("first_difference");
      v.first = FirstDifference{support::unsigned_member(f, "address", what),
                                support::unsigned_member(f, "region", what),
                                f.at("region_kind").get<std::string>(),
                                f.at("argument").get<int>(),
                                f.at("what").get<std::string>(),
                                f.at("element").get<std::uint64_t>(),
                                f.at("type").get<std::string>(),
                                f.at("expected").get<std::string>(),
                                f.at("actual").get<std::string>()};
    }
    for (const Json& part : document.at("parts")) v.parts.push_back(part_from(part));
    for (const Json& s : document.at("skipped")) {
      v.skipped.push_back({support::unsigned_member(s, "address", what), support::unsigned_member(s, "size", what),
                           s.at("reason").get<std::string>()});
    }
    if (document.contains("arguments")) v.arguments = arguments_from_json(document.at("arguments"));
    if (document.contains("restore")) {
      const Json& r = document.at("restore");
      v.restore = Restore{r.at("all_bytes").get<std::uint64_t>(), r.at("bytes").get<std::uint64_t>(),
                          number_from(r.at("all_ns")), number_from(r.at("ns"))};
    }
    v.notes = document.at("notes").get<std::vector<std::string>>();
    v.device_times = document.at("device_times_ns").get<std::vector<double>>();
    if (document.contains("bench")) v.bench = bench_from(document.at("bench"));
    return v;
  } catch (const Json::exception& error) {
    support::fail(support::ExitCode::bad_input, "{} is malformed: {}", what, error.what());
  }
}

std::string outlier_text(const Timing& t) {
  const std::vector<std::size_t> far = outliers(t.samples);
  if (far.empty()) return {};
  std::string text = fmt::format("{} of {} samples {} far above the others", far.size(), t.samples.size(),
                                 far.size() == 1 ? "is" : "are");
  if (far.front() == 0) text += "; the first of them is the first sample (caches, clocks that rise)";
  if (t.clocks.size() != t.samples.size()) return text + "; the system tells no clock that could explain them";
  std::vector<double> sorted = t.clocks;
  std::sort(sorted.begin(), sorted.end());
  constexpr double clearly = 0.97;
  const double usual = sorted[sorted.size() / 2];
  const auto slow = std::count_if(far.begin(), far.end(), [&](std::size_t i) { return t.clocks[i] < clearly * usual; });
  if (slow == 0) return text + "; the clock was as usual in them: other work on the GPU or the machine";
  return text + fmt::format("; the clock was below {:.2f} GHz in {} of them", usual * clearly / 1e9, slow);
}

std::string to_text(const Verdict& v) {
  std::string text = v.sentence + "\n";
  const auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    text += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  };
  if (!v.kernel.empty()) line("kernel       {}", v.kernel);
  if (!v.code_object.empty()) line("code object  {}{}", v.code_object, v.agent.empty() ? "" : "  on " + v.agent);
  if (v.compared_bytes != 0) line("compared     {} bytes, {} run{}", v.compared_bytes, v.runs, v.runs == 1 ? "" : "s");
  if (v.first) {
    const FirstDifference& f = *v.first;
    line("first difference at {:#x}: {}, element {} ({})", f.address, f.what, f.element, f.type);
    line("             expected {}, got {}", f.expected, f.actual);
    line("             region {:#x} ({}), offset {:#x}", f.region_address, f.region_kind, f.address - f.region_address);
  }
  for (const Part& part : v.parts) {
    const Statistics& s = part.statistics;
    if (s.differing == 0 && s.outside == 0) {
      line("{}: {} elements ({}), all as in the application", part.what, s.elements, part.type);
      continue;
    }
    line("{}: {} of {} elements differ, {} beyond the tolerance{}", part.what, s.differing, s.elements, s.outside,
         s.nans != 0 ? fmt::format(", {} unexpected NaN", s.nans) : "");
    if (s.max_ulps != 0) {
      line("             largest error {:.6g} absolute, {:.6g} relative, {} ULP", s.max_absolute, s.max_relative,
           s.max_ulps);
    } else if (s.max_absolute != 0) {
      line("             largest error {:.6g} absolute, {:.6g} relative", s.max_absolute, s.max_relative);
    }
  }
  if (v.bench) {
    const BenchResult& b = *v.bench;
    line("{} caches, {} clock, {} samples ({})", b.caches, b.clock, b.first.samples.size(), b.stopped_because);
    line("{:<12} {}", b.first.label, interval_text(b.first.median));
    if (b.second) line("{:<12} {}", b.second->label, interval_text(b.second->median));
    for (const Timing* timing : {&b.first, b.second ? &*b.second : nullptr}) {
      if (timing == nullptr) continue;
      if (!timing->clocks.empty()) {
        const auto [low, high] = std::minmax_element(timing->clocks.begin(), timing->clocks.end());
        line("{:<12} clock between {:.2f} and {:.2f} GHz", timing->label, *low / 1e9, *high / 1e9);
      }
      if (const std::string outliers_said = outlier_text(*timing); !outliers_said.empty())
        line("{:<12} {}", timing->label, outliers_said);
    }
    if (b.comparison) {
      line("{} against {}: {} (ratio {:.4f} [{:.4f}, {:.4f}])", b.second->label, b.first.label,
           to_string(b.comparison->answer), b.comparison->ratio.value, b.comparison->ratio.low,
           b.comparison->ratio.high);
    }
  } else if (!v.device_times.empty()) {
    line("device time  {}", interval_text(median_interval(v.device_times)));
  }
  for (const Skipped& s : v.skipped) line("not compared: {:#x}, {} bytes: {}", s.address, s.size, s.reason);
  for (const std::string& note : v.notes) line("note: {}", note);
  return text;
}

}  // namespace kerncap::replay
