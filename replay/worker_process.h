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
#include "replay/software_gpu.h"
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
  std::vector<KernelArgument> arguments;
  bool software_gpu = false;
  std::uint64_t written_bytes = 0;  // of all captured memory, when the process began
  double write_ns = 0;
};

struct WorkerTrial {
  std::string what;  // "floats" or an argument's label
  std::uint64_t seed = 0;
  std::filesystem::path outcome;
};

struct WorkerRun {
  bool nothing = false;  // a trial without anything to change
  double device_ns = 0, host_ns = 0, compare_ns = 0;
  double restore_ns = 0;  // of putting back what the run before had dirtied
  std::uint64_t restored_bytes = 0;
  std::string printed;  // by the kernel
  std::uint64_t printed_dropped = 0, host_calls_refused = 0;
  double clock_hz = 0;             // 0: the system does not tell
  std::optional<Verdict> verdict;  // outcome matches or differs, with parts, when compared
};

struct RunRequest {
  const char* compare = "everything";  // "none", "outputs", "everything", "record"
  bool cold = false;
  std::map<std::string, double> noise = {};
  std::optional<WorkerTrial> trial = std::nullopt;
  Circumstances circumstances = {};
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;  // default: the options'
};

class WorkerProcess {
 public:
  // `options.code_object` is what this worker runs. Tries several layouts of the process's address space until the
  // captured ranges are free. Throws WorkerFailure.
  explicit WorkerProcess(const Options& options);
  // Starts the process and returns at once; wait_until_ready() does the rest.
  enum class Later { yes };
  WorkerProcess(const Options& options, Later);
  void wait_until_ready();
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  const WorkerReady& ready() const { return ready_; }
  // With options.await_candidates: the code object that the next runs are of. Throws WorkerFailure; alive() says
  // whether another one may be tried.
  void load(const std::filesystem::path& code_object);
  // False after a fault, a hang, or when the process died.
  bool alive() const { return alive_; }
  // Throws WorkerFailure.
  WorkerRun run(const RunRequest& request);

 private:
  void start(unsigned long personality_flags);
  support::Json receive(std::chrono::milliseconds patience);
  void end();
  [[noreturn]] void died(bool timed_out);
  void take_ready(const support::Json& answer);

  const Options options_;
  WorkerReady ready_;
  pid_t pid_ = -1;
  std::unique_ptr<Channel> channel_;
  int errors_fd_ = -1;  // what the worker and the runtime wrote to standard error
  std::string phase_ = "starting";
  std::chrono::milliseconds timeout_;
  bool alive_ = true, started_ = false;
};

}  // namespace kerncap::replay
