#include "replay/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "replay/bench.h"
#include "replay/worker_pool.h"

namespace kerncap::replay {
namespace {

constexpr unsigned noise_runs_when_asked_by_failure = 3;
// For the software GPU: numbers without a meaning of their own, fixed so that a verdict comes again.
constexpr std::array<std::uint64_t, 2> poisons{0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
constexpr std::array<std::uint64_t, 4> order_seeds{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                                   0xa54ff53a5f1d36f1};
constexpr double slow_kernel_ns = 2e9;
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
  verdict.arguments = worker.ready().arguments;
  verdict.restore = Restore{worker.ready().written_bytes, 0, worker.ready().write_ns, 0};
}

// Takes over what one compared run said; the first run that differs is the one reported.
void take(Verdict& verdict, const WorkerRun& run) {
  if (verdict.restore && run.restored_bytes != 0) {
    verdict.restore->bytes = run.restored_bytes;
    verdict.restore->ns = run.restore_ns;
  }
  verdict.device_times.push_back(run.device_ns);
  if (verdict.device_times.size() == 1 && !run.printed.empty()) {
    verdict.notes.push_back(
        fmt::format("the kernel printed{}:\n{}",
                    run.printed_dropped == 0 ? "" : fmt::format(" ({} bytes more)", run.printed_dropped), run.printed));
  }
  if (verdict.device_times.size() == 1 && run.host_calls_refused != 0) {
    verdict.notes.push_back(
        fmt::format("{} calls of the kernel to the host were no printf and got zeros", run.host_calls_refused));
  }
  if (!run.verdict) return;
  ++verdict.runs;
  verdict.compared_bytes = std::max(verdict.compared_bytes, run.verdict->compared_bytes);
  verdict.skipped = run.verdict->skipped;
  if (verdict.outcome == Outcome::differs) return;
  verdict.outcome = run.verdict->outcome;
  verdict.first = run.verdict->first;
  verdict.parts = run.verdict->parts;
}

RunRequest request_of(const Options& options) {
  RunRequest request;
  request.timeout = options.timeout;  // a kept process was started with another
  return request;
}

struct NoiseReport {
  std::map<std::string, double> noise;
  bool deviates = false;  // the captured kernel's replay is not bit by bit the application's result
  bool explains = true;   // ... only in finite floating-point values
  std::string example;
};

// On the software GPU, in several orders of workgroups and waves, because there one order comes again and again.
NoiseReport measure_noise(const Options& options, WorkerPool& pool, unsigned runs) {
  NoiseReport report;
  WorkerProcess& original = pool.original();
  for (unsigned i = 0; i < runs; ++i) {
    RunRequest request = request_of(options);
    if (i != 0) request.circumstances.seed = order_seeds[i % order_seeds.size()];
    const WorkerRun run = original.run(request);
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

// One way in which a run may differ from the application's without a good kernel noticing.
struct Variation {
  Circumstances circumstances;
  const char* description;
  const char* meaning;
};

// Is this candidate's failure in a variation its own? The captured kernel is asked: where it fails as well, the
// dispatch cannot tell, and where it deviates in the last bits, so may the candidate.
bool accused(const Options& options, WorkerPool& pool, const Variation& variation, Verdict& verdict,
             const std::map<std::string, double>& noise) {
  RunRequest request = request_of(options);
  request.circumstances = variation.circumstances;
  request.noise = noise;
  WorkerRun run;
  std::string fault;
  try {
    run = pool.subject(options).run(request);
    if (run.verdict->outcome == Outcome::matches) return false;
  } catch (const WorkerFailure& failure) {
    if (failure.outcome != Outcome::fault && failure.outcome != Outcome::hang) throw;
    fault = failure.sentence;
  }
  try {
    const WorkerRun captured = pool.original().run(request);
    if (captured.verdict->outcome != Outcome::matches) {
      const NoiseReport report = measure_noise(options, pool, static_cast<unsigned>(order_seeds.size()));
      if (!report.explains || !fault.empty()) {
        verdict.notes.push_back(
            fmt::format("with {} the captured kernel itself gives another result: not judged", variation.description));
        return false;
      }
      if (noise.empty()) return accused(options, pool, variation, verdict, report.noise);
    }
  } catch (const WorkerFailure&) {
    verdict.notes.push_back(
        fmt::format("with {} the captured kernel itself does not run: not judged", variation.description));
    return false;
  }
  if (!fault.empty()) {
    verdict.outcome = Outcome::fault;
    verdict.sentence = fmt::format("NOT valid: {} has the application's result, but with {} it fails ({}): {}",
                                   kernel_name(verdict), variation.description, fault, variation.meaning);
    return true;
  }
  verdict.outcome = Outcome::differs;
  verdict.first = run.verdict->first;
  verdict.parts = run.verdict->parts;
  verdict.sentence = fmt::format(
      "NOT valid: {} has the application's result, but with {} it differs: {}, element {}: expected {}, got {}; {}",
      kernel_name(verdict), variation.description, verdict.first->what, verdict.first->element, verdict.first->expected,
      verdict.first->actual, variation.meaning);
  return true;
}

// What a kernel must not depend on: what registers, LDS and private memory held before it, and which workgroup or wave
// is faster. The software GPU can change both; elsewhere the kernel runs again, and chance does it.
bool agrees_in_other_circumstances(const Options& options, WorkerPool& pool, Verdict& verdict,
                                   const std::map<std::string, double>& noise) {
  constexpr const char* uninitialised = "it uses registers, LDS or private memory that it has not written";
  constexpr const char* race = "its result depends on which workgroup or wave is faster (a race)";
  const double usual_ns = verdict.device_times.empty() ? 0 : verdict.device_times.front();
  const bool steered = pool.subject(options).ready().software_gpu;
  const std::size_t tries = usual_ns > slow_kernel_ns ? 1 : poisons.size();
  for (std::size_t i = 0; i < tries; ++i) {
    Circumstances both;
    if (steered) both = {order_seeds[i], poisons[i], false};
    RunRequest request = request_of(options);
    request.circumstances = both;
    request.noise = noise;
    // The last one of everything: then the process knows what is dirty.
    if (i + 1 < tries) request.compare = "outputs";
    try {
      if (pool.subject(options).run(request).verdict->outcome == Outcome::matches) continue;
    } catch (const WorkerFailure& failure) {
      if (failure.outcome != Outcome::fault && failure.outcome != Outcome::hang) throw;
    }
    if (!steered) {
      if (accused(options, pool, {both, "another run", race}, verdict, noise)) return false;
      continue;
    }
    const Variation apart[] = {
        {{0, poisons[i], false}, "other initial contents of registers, LDS and private memory", uninitialised},
        {{order_seeds[i], 0, false}, "another order of workgroups and waves", race},
        {both, "another order of workgroups and waves and other initial contents of registers, LDS and private memory",
         "it uses what it has not written, or there is a race"},
    };
    for (const Variation& variation : apart) {
      if (accused(options, pool, variation, verdict, noise)) return false;
    }
  }
  return true;
}

// A candidate that matches on the captured inputs has to agree with the captured kernel on changed ones too. Changes
// that the captured kernel does not survive, or answers differently twice, prove nothing and are left out. Returns
// whether the candidate agreed; the verdict then says where it did not.
bool agrees_on_changed_inputs(const Options& options, WorkerPool& pool, Verdict& verdict) {
  const double usual_ns = verdict.device_times.empty() ? 0 : verdict.device_times.front();
  const auto wanted = std::chrono::milliseconds(static_cast<std::int64_t>(usual_ns / 1e6 * trial_patience));
  const auto patience = std::clamp(wanted, shortest_trial, longest_trial);
  std::vector<std::string> trials{"floats"};
  const std::vector<std::string> flippable = pool.subject(options).ready().flippable;
  trials.insert(trials.end(), flippable.begin(),
                flippable.begin() + static_cast<std::ptrdiff_t>(std::min(flippable.size(), most_flips)));
  unsigned made = 0;
  for (const std::string& what : trials) {
    const WorkerPool::Trial& trial = pool.trial(what, patience);
    if (!trial.usable) continue;
    ++made;
    RunRequest request = request_of(options);
    request.trial = trial.request;
    WorkerRun run;
    const std::string inputs =
        what == "floats" ? "floating-point inputs changed by a few percent" : "what " + what + " points to changed";
    try {
      run = pool.subject(options).run(request);
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
    verdict.notes.push_back(fmt::format("changed inputs: seed {:#x}", trial.request.seed));
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

void validate(const Options& options, WorkerPool& pool, Verdict& verdict) {
  const std::uint64_t runs = std::max<std::uint64_t>(options.iterations, 1);
  std::map<std::string, double> noise;
  {
    WorkerProcess& worker = pool.subject(options);
    describe(verdict, worker);
    if (!worker.ready().has_after) {
      throw WorkerFailure{
          Outcome::bad_input,
          fmt::format("the snapshot has no state after the kernel ({}), so nothing can be compared; --mode "
                      "replay runs it all the same",
                      worker.ready().incomplete_reason.empty() ? "no reason given" : worker.ready().incomplete_reason)};
    }
    if (worker.ready().noise_runs != 0 && options.code_object)
      noise = measure_noise(options, pool, worker.ready().noise_runs).noise;
    RunRequest request = request_of(options);
    request.noise = noise;
    for (std::uint64_t i = 0; i < runs; ++i) {
      take(verdict, worker.run(request));
      if (verdict.outcome == Outcome::differs) break;
    }
  }
  if (verdict.outcome == Outcome::differs && options.code_object && noise.empty()) {
    // Before a candidate is called wrong, the captured kernel has to show that it can be right.
    const NoiseReport report = measure_noise(options, pool, noise_runs_when_asked_by_failure);
    if (report.deviates && report.explains) {
      Verdict again;
      describe(again, pool.subject(options));
      again.code_object = verdict.code_object;
      again.dispatch = verdict.dispatch;
      RunRequest request = request_of(options);
      request.noise = noise = report.noise;
      for (std::uint64_t i = 0; i < runs && again.outcome != Outcome::differs; ++i) {
        take(again, pool.subject(options).run(request));
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
  if (verdict.outcome == Outcome::matches && options.code_object && options.changed_inputs) {
    if (!agrees_in_other_circumstances(options, pool, verdict, noise)) return;
    if (!agrees_on_changed_inputs(options, pool, verdict)) return;
  }
  sentence_for_comparison(verdict);
}

void replay_only(const Options& options, WorkerPool& pool, Verdict& verdict) {
  WorkerProcess& worker = pool.subject(options);
  describe(verdict, worker);
  const std::uint64_t runs = std::max<std::uint64_t>(options.iterations, 1);
  RunRequest request = request_of(options);
  request.compare = "none";
  for (std::uint64_t i = 0; i < runs; ++i) take(verdict, worker.run(request));
  verdict.runs = runs;
  verdict.outcome = Outcome::ran;
  verdict.sentence = fmt::format("{} ran {} time{}", kernel_name(verdict), runs, runs == 1 ? "" : "s");
}

std::string label_of(const Options& options) {
  return options.code_object ? options.code_object->filename().string() : std::string("captured");
}

// One run of `bench`: compared like any other, because a fast wrong kernel is not fast.
WorkerRun timed_run(WorkerProcess& worker, const Options& options, const char* extent, const std::string& label,
                    Verdict& verdict) {
  RunRequest request = request_of(options);
  request.compare = extent;
  request.cold = options.cold;
  request.circumstances.counter_clock = true;  // where there is one
  const WorkerRun run = worker.run(request);
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
  return run;
}

void bench(const Options& options, WorkerPool& pool, Verdict& verdict) {
  // Two processes: each has the memory at the application's addresses, and neither sees what the other computed.
  Options reference = options;
  const bool paired = !options.versus.empty();
  if (paired) {
    reference.captured = options.versus == "captured";
    reference.code_object.reset();
    if (!reference.captured) reference.code_object = options.versus;
  }
  std::unique_ptr<WorkerProcess> other;
  describe(verdict, pool.subject(options));
  const auto subject = [&]() -> WorkerProcess& { return pool.subject(options); };
  const auto opponent = [&]() -> WorkerProcess& {
    if (reference.captured) return pool.original();
    if (!other) other = std::make_unique<WorkerProcess>(reference);
    return *other;
  };
  const bool checked = subject().ready().has_after;
  const bool counted = subject().ready().software_gpu;
  const char* const all = checked ? "everything" : "none";
  const char* const outputs = checked ? "outputs" : "none";

  BenchResult result;
  result.caches = options.cold ? "cold" : "warm";
  result.clock = counted ? "instruction-counting" : "device";
  result.first.label = label_of(reference);
  Timing subject_timing;
  subject_timing.label = label_of(options);
  if (paired && subject_timing.label == result.first.label) result.first.label += " (reference)";
  if (!paired) result.first.label = subject_timing.label;

  // With a pair, 0 is the reference and 1 the subject; alone, 0 is the subject.
  const auto worker_of = [&](int which) -> WorkerProcess& { return paired && which == 0 ? opponent() : subject(); };
  const auto label = [&](int which) { return paired && which == 1 ? subject_timing.label : result.first.label; };
  for (int which = 0; which <= (paired ? 1 : 0); ++which)
    timed_run(worker_of(which), options, all, label(which), verdict);
  if (checked && options.code_object && options.changed_inputs) {
    verdict.outcome = Outcome::matches;
    if (!agrees_in_other_circumstances(options, pool, verdict, {})) return;
    if (!agrees_on_changed_inputs(options, pool, verdict)) return;
  }

  // A process has luck of its own with caches and pages, the same in all its runs: a pair is measured in several pairs
  // of fresh processes, equally long, and compare_paired() wants the same answer from each.
  // A clock that counts has no luck.
  const unsigned sessions = paired && !counted ? bench_sessions : 1;
  StoppingRule rule;
  rule.seconds = options.seconds / sessions;
  if (options.iterations != 0) rule.maximum = std::max<std::uint64_t>(options.iterations / sessions, 1);
  if (options.iterations == 0) rule.maximum /= sessions;
  rule.minimum = std::min(rule.minimum, rule.maximum);
  std::array<std::vector<std::pair<double, double>>, 2> clocks;  // of 0 and 1: time and clock of every run
  const auto measure = [&](int which) {
    const WorkerRun run = timed_run(worker_of(which), options, outputs, label(which), verdict);
    clocks[static_cast<std::size_t>(which)].emplace_back(run.device_ns, run.clock_hz);
    return run.device_ns;
  };
  // Warm-up runs come first in each session; what is left belongs to the samples.
  const auto take_clocks = [&](int which, std::size_t samples, std::vector<double>& to) {
    auto& from = clocks[static_cast<std::size_t>(which)];
    from.erase(from.begin(), from.end() - static_cast<std::ptrdiff_t>(std::min(samples, from.size())));
    for (const auto& [time, clock] : from) {
      if (clock > 0) to.push_back(clock);
    }
    from.clear();
  };
  Series series;
  for (unsigned session = 0; session < sessions; ++session) {
    if (session != 0) {
      pool.drop_subject();
      pool.drop_original();
      other.reset();
      if (session % 2 == 0) subject();
      opponent();
      subject();
    }
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const Series part = measure_series(measure, paired, rule, warm_up_runs, elapsed);
    series.first.insert(series.first.end(), part.first.begin(), part.first.end());
    series.second.insert(series.second.end(), part.second.begin(), part.second.end());
    series.stopped_because = part.stopped_because;
    take_clocks(0, part.first.size(), result.first.clocks);
    if (paired) take_clocks(1, part.second.size(), subject_timing.clocks);
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
  WorkerPool pool(options, false);
  return judge(options, pool);
}

Verdict judge(const Options& options, WorkerPool& pool) {
  Verdict verdict;
  verdict.dispatch = options.dispatch;
  verdict.code_object = options.code_object ? options.code_object->string() : "captured";
  pool.begin();
  try {
    switch (options.mode) {
      case Mode::replay:
        replay_only(options, pool, verdict);
        break;
      case Mode::bench:
        bench(options, pool, verdict);
        break;
      default:
        validate(options, pool, verdict);
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
  } catch (const support::Json::exception& error) {
    verdict.outcome = Outcome::refused;
    verdict.sentence = fmt::format("the replaying process answered something unexpected ({})", error.what());
  }
  pool.end(verdict);
  if (!options.all_parts) {
    std::erase_if(verdict.parts,
                  [](const Part& part) { return part.statistics.differing == 0 && part.statistics.outside == 0; });
  }
  return verdict;
}

}  // namespace kerncap::replay
