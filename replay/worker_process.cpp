#include "replay/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using support::Json;

// Layouts of the worker's address space, tried in turn. Applications run randomised below the stack, so the old layout
// (libraries from a third of the address space upward) is the least likely to meet their memory. Seccomp rules of
// containers may forbid personality(); then every try is a random layout.
constexpr std::array<unsigned long, 6> layouts{ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT, ADDR_NO_RANDOMIZE, 0, 0, 0, 0};

constexpr std::chrono::milliseconds patience{600'000};  // for set-up and comparison of the largest snapshots
constexpr std::chrono::milliseconds grace{15'000};      // beyond the kernel's own time-out

std::vector<std::string> worker_command(const Options& options, int fd) {
  std::vector<std::string> words = command_line(options, "kerncap-replay");
  if (options.await_candidates) words.emplace_back("--await-candidates");
  words.push_back("--worker-fd");
  words.push_back(std::to_string(fd));
  return words;
}

std::string tail_of(int fd) {
  if (fd < 0) return {};
  const off_t size = ::lseek(fd, 0, SEEK_END);
  constexpr off_t most = 2000;
  std::string text(static_cast<std::size_t>(std::min(std::max<off_t>(size, 0), most)), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

Outcome outcome_of(int code) {
  switch (static_cast<support::ExitCode>(code)) {
    case support::ExitCode::bad_input:
      return Outcome::bad_input;
    case support::ExitCode::answer_is_no:
      return Outcome::fault;
    default:
      return Outcome::refused;
  }
}

}  // namespace

WorkerProcess::WorkerProcess(const Options& options, Later) : options_(options), timeout_(options.timeout) {
  start(layouts.front());
}

WorkerProcess::WorkerProcess(const Options& options) : WorkerProcess(options, Later::yes) { wait_until_ready(); }

void WorkerProcess::take_ready(const Json& answer) {
  ready_.kernel = answer.value("kernel", "");
  ready_.agent = answer.value("agent", "");
  ready_.has_after = answer.value("has_after", false);
  ready_.incomplete_reason = answer.value("incomplete_reason", "");
  ready_.noise_runs = answer.value("noise_runs", 0u);
  ready_.flippable = answer.value("flippable", std::vector<std::string>{});
  ready_.notes = answer.value("notes", std::vector<std::string>{});
  ready_.software_gpu = answer.value("software_gpu", false);
  ready_.written_bytes = answer.value("written_bytes", std::uint64_t{0});
  ready_.write_ns = answer.value("write_ns", 0.0);
  ready_.arguments = arguments_from_json(answer.value("arguments", Json::array()));
}

void WorkerProcess::wait_until_ready() {
  if (started_) return;
  std::string occupied;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (i != 0) start(layouts[i]);
    const Json answer = receive(patience);
    const std::string event = answer.value("event", "");
    if (event == "ready") take_ready(answer);
    if (event == "ready" || event == "waiting") {
      started_ = true;
      return;
    }
    const std::string sentence = answer.value("sentence", "");
    end();
    if (event != "occupied") {
      alive_ = false;
      const int code = answer.value("code", static_cast<int>(support::ExitCode::environment));
      if (code == static_cast<int>(support::ExitCode::usage)) throw support::Error(support::ExitCode::usage, sentence);
      throw WorkerFailure{outcome_of(code), sentence};
    }
    occupied = sentence;
  }
  throw WorkerFailure{Outcome::refused, fmt::format("{}, in each of {} layouts of the process that were tried",
                                                    occupied, layouts.size())};
}

WorkerProcess::~WorkerProcess() { end(); }

void WorkerProcess::start(unsigned long personality_flags) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    support::fail(support::ExitCode::environment, "no socket for the replaying process: {}", std::strerror(errno));
  }
  errors_fd_ = options_.verbose ? -1 : ::memfd_create("kerncap-replay-errors", MFD_CLOEXEC);
  // The process runner of core/support cannot hand over a socket and a personality; this is the one other place that
  // starts a process.
  const std::vector<std::string> words = worker_command(options_, ends[1]);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    support::fail(support::ExitCode::environment, "cannot start the replaying process: {}", std::strerror(errno));
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a hanging kernel's process must not outlive us
    if (::getppid() != parent) ::_exit(127);
    ::fcntl(ends[1], F_SETFD, 0);
    if (errors_fd_ >= 0) ::dup2(errors_fd_, STDERR_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is the verdict's
    const int now = ::personality(0xffffffff);
    if (now >= 0) {
      constexpr unsigned long ours = ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT;
      ::personality((static_cast<unsigned long>(now) & ~ours) | personality_flags);
    }
    // Nobody else's tool may sit in this runtime.
    ::unsetenv("HSA_TOOLS_LIB");
    ::unsetenv("KERNCAP_CAPTURE_CONFIG");
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  channel_ = std::make_unique<Channel>(ends[0]);
  phase_ = "starting";
}

Json WorkerProcess::receive(std::chrono::milliseconds limit) {
  for (;;) {
    Json message;
    const auto wait = phase_ == "running the kernel" ? timeout_ + grace : limit;
    switch (channel_->receive(message, wait)) {
      case Channel::End::message:
        break;
      case Channel::End::closed:
        died(false);
      case Channel::End::timed_out:
        died(true);
    }
    const std::string event = message.value("event", "");
    if (event == "phase") {
      phase_ = message.value("text", "");
      continue;
    }
    if (event == "fault" || event == "hang") alive_ = false;
    if (event == "fault") throw WorkerFailure{Outcome::fault, message.value("text", "")};
    if (event == "hang") {
      throw WorkerFailure{Outcome::hang, fmt::format("the kernel did not end within {} s",
                                                     static_cast<double>(timeout_.count()) / 1000)};
    }
    return message;
  }
}

void WorkerProcess::died(bool timed_out) {
  alive_ = false;
  if (timed_out) {
    const bool kernel = phase_ == "running the kernel";
    throw WorkerFailure{kernel ? Outcome::hang : Outcome::refused,
                        fmt::format("the replaying process did not answer while {}", phase_)};
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  const std::string said = tail_of(errors_fd_);
  const std::string how =
      WIFSIGNALED(status) ? fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                          : fmt::format("ended with status {}", WEXITSTATUS(status));
  const bool kernel = phase_ == "running the kernel" || phase_ == "comparing";
  throw WorkerFailure{
      kernel ? Outcome::fault : Outcome::refused,
      fmt::format("the replaying process {} while {}{}{}", how, phase_, said.empty() ? "" : "; it said: ", said)};
}

void WorkerProcess::end() {
  if (channel_) {
    channel_->send({{"command", "quit"}});
    channel_.reset();
  }
  if (pid_ > 0) {
    // It is only waiting for commands, or it hangs; either way nothing in it is worth waiting for.
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  if (errors_fd_ >= 0) {
    ::close(errors_fd_);
    errors_fd_ = -1;
  }
}

void WorkerProcess::load(const std::filesystem::path& code_object) {
  channel_->send({{"command", "load"}, {"code_object", code_object.string()}});
  const Json answer = receive(patience);
  if (answer.value("event", "") == "ready") return take_ready(answer);
  throw WorkerFailure{outcome_of(answer.value("code", static_cast<int>(support::ExitCode::environment))),
                      answer.value("sentence", "the replaying process answered something unexpected")};
}

WorkerRun WorkerProcess::run(const RunRequest& request) {
  timeout_ = request.timeout.value_or(options_.timeout);
  Json command{
      {"command", "run"}, {"compare", request.compare}, {"cold", request.cold}, {"timeout_ms", timeout_.count()}};
  if (!request.noise.empty()) command["noise"] = request.noise;
  if (request.trial) {
    command["trial"] = request.trial->what;
    command["seed"] = request.trial->seed;
    command["outcome"] = request.trial->outcome.string();
  }
  if (request.circumstances.seed != 0) command["seed_of_order"] = request.circumstances.seed;
  if (request.circumstances.poison != 0) command["poison"] = request.circumstances.poison;
  if (request.circumstances.counter_clock) command["counter_clock"] = true;
  channel_->send(command);
  const Json answer = receive(patience);
  if (request.trial && answer.value("event", "") == "nothing") {
    WorkerRun nothing;
    nothing.nothing = true;
    return nothing;
  }
  if (answer.value("event", "") != "ran") {
    alive_ = false;  // it ends after an error in the middle of a run
    throw WorkerFailure{outcome_of(answer.value("code", static_cast<int>(support::ExitCode::environment))),
                        answer.value("sentence", "the replaying process answered something unexpected")};
  }
  WorkerRun result;
  result.device_ns = answer.value("device_ns", 0.0);
  result.host_ns = answer.value("host_ns", 0.0);
  result.restore_ns = answer.value("restore_ns", 0.0);
  result.restored_bytes = answer.value("restored_bytes", std::uint64_t{0});
  result.printed = answer.value("printed", "");
  result.printed_dropped = answer.value("printed_dropped", std::uint64_t{0});
  result.host_calls_refused = answer.value("host_calls_refused", std::uint64_t{0});
  result.clock_hz = answer.value("clock_hz", 0.0);
  result.compare_ns = answer.value("compare_ns", 0.0);
  if (answer.contains("verdict")) result.verdict = verdict_from_json(answer.at("verdict"));
  return result;
}

}  // namespace kerncap::replay
