#include "replay/worker_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace kerncap::replay {
namespace {

// What only a stray write changes: memory that no argument leads to and that is no device variable.
bool wrote_astray(const Verdict& verdict) {
  return std::any_of(verdict.parts.begin(), verdict.parts.end(), [](const Part& part) {
    return part.statistics.differing != 0 && part.argument < 0 && !part.what.starts_with("device variable");
  });
}

}  // namespace

WorkerPool::WorkerPool(const Options& options, bool keep)
    : captured_(options), awaiting_(options), keep_(keep), folder_("kerncap-trial") {
  captured_.code_object.reset();
  captured_.captured = true;
  awaiting_.code_object.reset();
  awaiting_.captured = false;
  awaiting_.await_candidates = true;
}

void WorkerPool::warm_up() {
  if (keep_ && !subject_) subject_ = start_for_candidates();
}

std::unique_ptr<WorkerProcess> WorkerPool::start_for_candidates() const {
  return std::make_unique<WorkerProcess>(awaiting_, WorkerProcess::Later::yes);
}

WorkerProcess& WorkerPool::subject(const Options& options) {
  const std::string wanted = options.code_object ? options.code_object->string() : std::string();
  if (subject_ && !subject_->alive()) subject_.reset();
  if (subject_ && loaded_ == wanted) return *subject_;
  if (!keep_ || !options.code_object) {
    subject_.reset();
    subject_ = std::make_unique<WorkerProcess>(options);
  } else {
    warm_up();
    loaded_.reset();
    subject_->wait_until_ready();
    subject_->load(*options.code_object);
  }
  loaded_ = wanted;
  return *subject_;
}

WorkerProcess& WorkerPool::original() {
  if (original_ && !original_->alive()) original_.reset();
  if (!original_) original_ = std::make_unique<WorkerProcess>(captured_);
  return *original_;
}

void WorkerPool::begin() {
  if (loaded_ && loaded_->empty()) subject_.reset();  // the captured code object stood there
  loaded_.reset();
}

void WorkerPool::end(const Verdict& verdict) {
  if (!keep_) return;
  if (!subject_ || !subject_->alive() || wrote_astray(verdict)) {
    subject_.reset();
    loaded_.reset();
    warm_up();
  }
}

const WorkerPool::Trial& WorkerPool::trial(const std::string& what, std::chrono::milliseconds patience) {
  if (const auto found = trials_.find(what); found != trials_.end()) return found->second;
  std::random_device entropy;
  Trial trial;
  trial.request.what = what;
  trial.request.seed = (std::uint64_t{entropy()} << 32) | entropy();
  trial.request.outcome = folder_.path() / fmt::format("outcome-{}", trials_.size());
  try {
    RunRequest request;
    request.trial = trial.request;
    request.timeout = std::min(captured_.timeout, patience);
    request.compare = "record";
    if (!original().run(request).nothing) {
      request.compare = "everything";
      trial.usable = original().run(request).verdict->outcome == Outcome::matches;
    }
  } catch (const WorkerFailure&) {
    // Inputs that the captured kernel does not survive.
  }
  return trials_.emplace(what, std::move(trial)).first->second;
}

}  // namespace kerncap::replay
