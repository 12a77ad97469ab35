// The processes behind one question, or behind a whole session of them (watch, serve): one for candidates, one for the
// captured kernel. Kept processes hold the snapshot in the GPU's memory, so that the next candidate needs only its own
// code and what the last one dirtied.
//
// A candidate that faulted, hung or wrote where only a stray pointer gets is the last of its process: what it may have
// spoiled besides the captured memory (the runtime's own) must not reach the next one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/support/file.h"
#include "replay/worker_process.h"

namespace kerncap::replay {

class WorkerPool {
 public:
  // `keep`: candidates come and go in one process.
  WorkerPool(const Options& options, bool keep);

  // The process that runs options.code_object, or the captured code object without one. Throws WorkerFailure.
  WorkerProcess& subject(const Options& options);
  // The process that runs the captured code object. Throws WorkerFailure.
  WorkerProcess& original();

  // A new question begins: the code object's file may have other content than last time.
  void begin();
  // The question is answered. Starts a fresh process for the next candidate where this one may have spoiled its own.
  void end(const Verdict& verdict);
  void drop_subject() { subject_.reset(); }
  void drop_original() { original_.reset(); }
  // Begins restoring the snapshot for the first candidate, without waiting for it.
  void warm_up();
  const std::filesystem::path& scratch_folder() const { return folder_.path(); }

  // Trials on changed inputs that the captured kernel survives and answers alike twice; made once. `patience`: for one
  // of its runs.
  struct Trial {
    WorkerTrial request;
    bool usable = false;
  };
  const Trial& trial(const std::string& what, std::chrono::milliseconds patience);

 private:
  std::unique_ptr<WorkerProcess> start_for_candidates() const;

  Options captured_, awaiting_;
  bool keep_ = false;
  std::unique_ptr<WorkerProcess> subject_, original_;
  std::optional<std::string> loaded_;
  support::TemporaryFolder folder_;
  std::map<std::string, Trial> trials_;
};

}  // namespace kerncap::replay
