#include "replay/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "core/support/file.h"
#include "replay/bench.h"
#include "replay/worker_process.h"

namespace kerncap::replay {
namespace {

constexpr unsigned noise_runs_when_asked_by_failure = 3;
constexpr unsigned warm_up_runs = 3;
constexpr unsigned bench_sessions = 5;
constexpr double session_patience = 1.5;
constexpr std::size_t most_flips = 4;
// Changed inputs can make a loop endless; how often the usual time the captured kernel may take, and the bounds of
// that.
constexpr double trial_patience = 100;
constexpr std::chrono::milliseconds shortest_trial{1'000}, longest_trial{10'000};

std::string kernel_name(const Verdict& verdict) {
  return verdict.kernel.empty() ? "the kernel" : "kernel '" + verdict.kernel + "'";
}

void describe(Verdict& verdict, const WorkerProcess& worker) {
  verdict.kernel = worker.ready().kernel;
  verdict.agent = worker.ready().agent;
  verdict.notes = worker.ready().notes;
}

// Takes over what one compared run said; the first run that differs is the one reported.
void take(Verdict& verdict, const WorkerRun& run) {
  verdict.device_times.push_back(run.device_ns);
  if (!run.verdict) return;
  ++verdict.runs;
  verdict.compared_bytes = std::max(verdict.compared_bytes, run.verdict->compared_bytes);
  verdict.skipped = run.verdict->skipped;
  if (verdict.outcome == Outcome::differs) return;
  verdict.outcome = run.verdict->outcome;
  verdict.first = run.verdict->first;
  verdict.parts = run.verdict->parts;
}

struct NoiseReport {
  std::map<std::string, double> noise;
  bool deviates = false;  // the captured kernel's replay is not bit by bit the application's result
  bool explains = true;   // ... only in finite floating-point values
  std::string example;
};

NoiseReport measure_noise(Options options, unsigned runs) {
  options.code_object.reset();
  options.captured = true;
  NoiseReport report;
  WorkerProcess original(options);
  for (unsigned i = 0; i < runs; ++i) {
    const WorkerRun run = original.run("everything", false);
    for (const Part& part : run.verdict->parts) {
      const Statistics& s = part.statistics;
      if (s.differing == 0) continue;
      report.deviates = true;
      const auto type = element_type(part.type);
      if (!type || !is_floating(*type) || s.nans != 0) report.explains = false;
      if (report.example.empty()) report.example = part.what;
      report.noise[part.what] = std::max(report.noise[part.what], s.max_absolute);
    }
  }
  return report;
}

// A candidate that matches on the captured inputs has to agree with the captured kernel on changed ones too. The
// captured kernel comes first: changes that it does not survive, or answers differently twice, prove nothing and are
// left out. Returns whether the candidate agreed; the verdict then says where it did not.
bool agrees_on_changed_inputs(const Options& options, WorkerProcess& candidate, Verdict& verdict) {
  Options captured = options;
  captured.code_object.reset();
  captured.captured = true;
  const double usual_ns = verdict.device_times.empty() ? 0 : verdict.device_times.front();
  const auto patience = std::chrono::milliseconds(static_cast<std::int64_t>(usual_ns / 1e6 * trial_patience));
  captured.timeout = std::min(captured.timeout, std::clamp(patience, shortest_trial, longest_trial));
  auto original = std::make_unique<WorkerProcess>(captured);
  std::vector<std::string> trials{"floats"};
  const auto& flippable = candidate.ready().flippable;
  trials.insert(trials.end(), flippable.begin(),
                flippable.begin() + static_cast<std::ptrdiff_t>(std::min(flippable.size(), most_flips)));
  const support::TemporaryFolder folder("kerncap-trial");
  std::random_device entropy;
  unsigned made = 0;
  for (const std::string& what : trials) {
    const WorkerTrial trial{what, (std::uint64_t{entropy()} << 32) | entropy(), folder.path() / "outcome"};
    try {
      if (original->run("record", false, {}, trial).nothing) continue;
      if (original->run("everything", false, {}, trial).verdict->outcome != Outcome::matches) continue;
    } catch (const WorkerFailure&) {
      original = std::make_unique<WorkerProcess>(captured);
      continue;
    }
    ++made;
    WorkerRun run;
    const std::string inputs =
        what == "floats" ? "floating-point inputs changed by a few percent" : "what " + what + " points to changed";
    try {
      run = candidate.run("everything", false, {}, trial);
    } catch (const WorkerFailure& failure) {
      throw WorkerFailure{failure.outcome,
                          fmt::format("with {}, where the captured kernel runs: {}", inputs, failure.sentence)};
    }
    if (run.verdict->outcome == Outcome::matches) continue;
    verdict.outcome = Outcome::differs;
    verdict.first = run.verdict->first;
    verdict.parts = run.verdict->parts;
    verdict.sentence = fmt::format(
        "NOT valid: {} has the application's result, but with {} it differs from the captured kernel: {}, "
        "element {}: expected {}, got {}",
        kernel_name(verdict), inputs, verdict.first->what, verdict.first->element, verdict.first->expected,
        verdict.first->actual);
    verdict.notes.push_back(fmt::format("changed inputs: seed {:#x}", trial.seed));
    return false;
  }
  verdict.notes.push_back(made != 0
                              ? fmt::format("it also agrees with the captured kernel on {} set{} of changed inputs",
                                            made, made == 1 ? "" : "s")
                              : std::string("no changed inputs could be tried on this kernel"));
  return true;
}

void sentence_for_comparison(Verdict& verdict) {
  const std::string subject = kernel_name(verdict);
  if (verdict.outcome == Outcome::matches) {
    verdict.sentence =
        fmt::format("valid: {} left memory as it was left in the application ({} bytes compared, {} run{})", subject,
                    verdict.compared_bytes, verdict.runs, verdict.runs == 1 ? "" : "s");
    const bool tolerated = std::any_of(verdict.parts.begin(), verdict.parts.end(),
                                       [](const Part& part) { return part.statistics.differing != 0; });
    if (tolerated) verdict.sentence += ", within the tolerance";
    return;
  }
  const FirstDifference& f = *verdict.first;
  verdict.sentence = fmt::format("NOT valid: {} differs from the application: {}, element {}: expected {}, got {}",
                                 subject, f.what, f.element, f.expected, f.actual);
}

void validate(const Options& options, Verdict& verdict) {
  const std::uint64_t runs = std::max<std::uint64_t>(options.iterations, 1);
  std::map<std::string, double> noise;
  {
    WorkerProcess worker(options);
    describe(verdict, worker);
    if (!worker.ready().has_after) {
      throw WorkerFailure{
          Outcome::bad_input,
          fmt::format("the snapshot has no state after the kernel ({}), so nothing can be compared; --mode "
                      "replay runs it all the same",
                      worker.ready().incomplete_reason.empty() ? "no reason given" : worker.ready().incomplete_reason)};
    }
    if (worker.ready().noise_runs != 0 && options.code_object)
      noise = measure_noise(options, worker.ready().noise_runs).noise;
    for (std::uint64_t i = 0; i < runs; ++i) {
      take(verdict, worker.run("everything", false, noise));
      if (verdict.outcome == Outcome::differs) break;
    }
    if (verdict.outcome == Outcome::matches && options.code_object && options.changed_inputs) {
      if (!agrees_on_changed_inputs(options, worker, verdict)) return;
    }
  }
  if (verdict.outcome == Outcome::differs && options.code_object && noise.empty()) {
    // Before a candidate is called wrong, the captured kernel has to show that it can be right.
    const NoiseReport report = measure_noise(options, noise_runs_when_asked_by_failure);
    if (report.deviates && report.explains) {
      Verdict again;
      again.kernel = verdict.kernel;
      again.agent = verdict.agent;
      again.notes = verdict.notes;
      WorkerProcess worker(options);
      for (std::uint64_t i = 0; i < runs && again.outcome != Outcome::differs; ++i) {
        take(again, worker.run("everything", false, report.noise));
      }
      verdict = std::move(again);
      verdict.notes.push_back(
          fmt::format("the captured kernel itself is not deterministic ({}): deviations up to twice what {} runs of it "
                      "showed are allowed",
                      report.example, noise_runs_when_asked_by_failure));
    } else if (report.deviates) {
      verdict.notes.push_back(
          fmt::format("the captured kernel's own replay differs from the application too ({}): this dispatch cannot "
                      "judge bit by bit",
                      report.example));
    }
  }
  sentence_for_comparison(verdict);
}

void replay_only(const Options& options, Verdict& verdict) {
  WorkerProcess worker(options);
  describe(verdict, worker);
  const std::uint64_t runs = std::max<std::uint64_t>(options.iterations, 1);
  for (std::uint64_t i = 0; i < runs; ++i) take(verdict, worker.run("none", false));
  verdict.runs = runs;
  verdict.outcome = Outcome::ran;
  verdict.sentence = fmt::format("{} ran {} time{}", kernel_name(verdict), runs, runs == 1 ? "" : "s");
}

std::string label_of(const Options& options) {
  return options.code_object ? options.code_object->filename().string() : std::string("captured");
}

// One run of `bench`: compared like any other, because a fast wrong kernel is not fast.
double timed_run(WorkerProcess& worker, const Options& options, const char* extent, const std::string& label,
                 Verdict& verdict) {
  const WorkerRun run = worker.run(extent, options.cold);
  if (run.verdict) {
    verdict.compared_bytes = std::max(verdict.compared_bytes, run.verdict->compared_bytes);
    verdict.skipped = run.verdict->skipped;
    ++verdict.runs;
    if (run.verdict->outcome == Outcome::differs) {
      verdict.first = run.verdict->first;
      verdict.parts = run.verdict->parts;
      throw WorkerFailure{Outcome::differs,
                          fmt::format("NOT valid: run {} of {} ({}) differs from the application: {}, element {}: "
                                      "expected {}, got {}; its times are worth nothing",
                                      verdict.runs, kernel_name(verdict), label, verdict.first->what,
                                      verdict.first->element, verdict.first->expected, verdict.first->actual)};
    }
  }
  return run.device_ns;
}

void bench(const Options& options, Verdict& verdict) {
  // Two processes: each has the memory at the application's addresses, and neither sees what the other computed.
  Options reference = options;
  const bool paired = !options.versus.empty();
  if (paired) {
    reference.captured = options.versus == "captured";
    reference.code_object.reset();
    if (!reference.captured) reference.code_object = options.versus;
  }
  auto subject = std::make_unique<WorkerProcess>(options);
  describe(verdict, *subject);
  std::unique_ptr<WorkerProcess> other;
  if (paired) other = std::make_unique<WorkerProcess>(reference);
  const bool checked = subject->ready().has_after;
  const char* const all = checked ? "everything" : "none";
  const char* const outputs = checked ? "outputs" : "none";

  BenchResult result;
  result.caches = options.cold ? "cold" : "warm";
  result.first.label = label_of(reference);
  Timing subject_timing;
  subject_timing.label = label_of(options);
  if (paired && subject_timing.label == result.first.label) result.first.label += " (reference)";
  if (!paired) result.first.label = subject_timing.label;

  // With a pair, 0 is the reference and 1 the subject; alone, 0 is the subject.
  const auto worker_of = [&](int which) -> WorkerProcess& { return paired && which == 0 ? *other : *subject; };
  const auto label = [&](int which) { return paired && which == 1 ? subject_timing.label : result.first.label; };
  for (int which = 0; which <= (paired ? 1 : 0); ++which)
    timed_run(worker_of(which), options, all, label(which), verdict);
  if (checked && options.code_object && options.changed_inputs && !agrees_on_changed_inputs(options, *subject, verdict))
    return;

  // A process has luck of its own with caches and pages, the same in all its runs: a pair is measured in several pairs
  // of fresh processes, equally long, and compare_paired() wants the same answer from each.
  const unsigned sessions = paired ? bench_sessions : 1;
  StoppingRule rule;
  rule.seconds = options.seconds / sessions;
  if (options.iterations != 0) rule.maximum = std::max<std::uint64_t>(options.iterations / sessions, 1);
  if (options.iterations == 0) rule.maximum /= sessions;
  rule.minimum = std::min(rule.minimum, rule.maximum);
  const auto measure = [&](int which) { return timed_run(worker_of(which), options, outputs, label(which), verdict); };
  Series series;
  for (unsigned session = 0; session < sessions; ++session) {
    if (session != 0) {
      subject.reset();
      other.reset();
      if (session % 2 == 0) subject = std::make_unique<WorkerProcess>(options);
      other = std::make_unique<WorkerProcess>(reference);
      if (!subject) subject = std::make_unique<WorkerProcess>(options);
    }
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const Series part = measure_series(measure, paired, rule, warm_up_runs, elapsed);
    series.first.insert(series.first.end(), part.first.begin(), part.first.end());
    series.second.insert(series.second.end(), part.second.begin(), part.second.end());
    series.stopped_because = part.stopped_because;
    rule.minimum = rule.maximum = part.first.size();
    if (session == 0) rule.seconds *= session_patience;  // equal length matters more than the time
  }
  for (int which = 0; which <= (paired ? 1 : 0); ++which) {
    timed_run(worker_of(which), options, all, label(which), verdict);
  }

  result.stopped_because = series.stopped_because;
  result.first.samples = series.first;
  result.first.median = median_interval(series.first);
  result.first.results_checked = checked;
  if (paired) {
    subject_timing.samples = series.second;
    subject_timing.median = median_interval(series.second);
    subject_timing.results_checked = checked;
    result.second = subject_timing;
    result.comparison = compare_paired(series.first, series.second, options.threshold);
  }
  verdict.outcome = checked ? Outcome::matches : Outcome::ran;
  if (!checked) verdict.notes.emplace_back("the snapshot has no state after the kernel: results were not checked");
  if (paired) {
    const Comparison& c = *result.comparison;
    verdict.sentence =
        c.answer == Answer::cannot_tell
            ? fmt::format("cannot tell whether {} is faster or slower than {}: ratio {:.4f}, between {:.4f} and {:.4f}",
                          result.second->label, result.first.label, c.ratio.value, c.ratio.low, c.ratio.high)
        : c.answer == Answer::same
            ? fmt::format("same: {} takes {:.2f} % of the time of {}, a difference within {:g} %", result.second->label,
                          100 * c.ratio.value, result.first.label, 100 * c.threshold)
            : fmt::format("{}: {} takes {:.2f} % of the time of {}", to_string(c.answer), result.second->label,
                          100 * c.ratio.value, result.first.label);
  } else {
    verdict.sentence =
        fmt::format("{} takes {:.0f} ns (median of {} runs; between {:.0f} and {:.0f} with {:.0f} % confidence)",
                    kernel_name(verdict), result.first.median.value, result.first.samples.size(),
                    result.first.median.low, result.first.median.high, 100 * result.first.median.confidence);
  }
  verdict.bench = std::move(result);
}

}  // namespace

Verdict judge(const Options& wanted) {
  Options options = wanted;
  const Input input = resolve_input(options.input);
  if (!options.code_object && !options.captured) options.code_object = input.code_object;
  Verdict verdict;
  verdict.dispatch = options.dispatch;
  verdict.code_object = options.code_object ? options.code_object->string() : "captured";
  try {
    switch (options.mode) {
      case Mode::replay:
        replay_only(options, verdict);
        break;
      case Mode::validate:
        validate(options, verdict);
        break;
      case Mode::bench:
        bench(options, verdict);
        break;
    }
  } catch (const WorkerFailure& failure) {
    verdict.outcome = failure.outcome;
    const bool of_the_kernel = failure.outcome == Outcome::fault || failure.outcome == Outcome::hang;
    verdict.sentence =
        of_the_kernel ? fmt::format("NOT valid: {}: {}", kernel_name(verdict), failure.sentence) : failure.sentence;
  } catch (const support::Error& error) {
    if (error.code() == support::ExitCode::usage) throw;
    verdict.outcome = error.code() == support::ExitCode::bad_input ? Outcome::bad_input : Outcome::refused;
    verdict.sentence = error.what();
  }
  if (!options.all_parts) {
    std::erase_if(verdict.parts,
                  [](const Part& part) { return part.statistics.differing == 0 && part.statistics.outside == 0; });
  }
  return verdict;
}

}  // namespace kerncap::replay
