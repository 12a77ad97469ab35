// A worker seen from the judging process: started without address randomisation, talked to, survived.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/channel.h"
#include "replay/options.h"
#include "replay/verdict.h"

namespace kerncap::replay {

// What ended a worker, as an outcome for the verdict: a fault, a hang, a refusal, bad input.
struct WorkerFailure {
  Outcome outcome = Outcome::refused;
  std::string sentence;
};

struct WorkerReady {
  std::string kernel, agent, incomplete_reason;
  bool has_after = false;
  unsigned noise_runs = 0;
  std::vector<std::string> notes;
  std::vector<std::string> flippable;  // arguments that a trial may flip
};

struct WorkerTrial {
  std::string what;  // "floats" or an argument's label
  std::uint64_t seed = 0;
  std::filesystem::path outcome;
};

struct WorkerRun {
  bool nothing = false;  // a trial without anything to change
  double device_ns = 0, host_ns = 0;
  std::optional<Verdict> verdict;  // outcome matches or differs, with parts, when compared
};

class WorkerProcess {
 public:
  // `options.code_object` is what this worker runs. Tries several layouts of the process's address space until the
  // captured ranges are free. Throws WorkerFailure.
  explicit WorkerProcess(const Options& options);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  const WorkerReady& ready() const { return ready_; }
  // Throws WorkerFailure.
  WorkerRun run(const char* compare, bool cold, const std::map<std::string, double>& noise = {},
                const std::optional<WorkerTrial>& trial = std::nullopt);

 private:
  void start(unsigned long personality_flags);
  support::Json receive(std::chrono::milliseconds patience);
  void end();
  [[noreturn]] void died(bool timed_out);

  const Options options_;
  WorkerReady ready_;
  pid_t pid_ = -1;
  std::unique_ptr<Channel> channel_;
  int errors_fd_ = -1;  // what the worker and the runtime wrote to standard error
  std::string phase_ = "starting";
};

}  // namespace kerncap::replay
