#include "replay/watch.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "replay/interruption.h"
#include "replay/judge.h"
#include "replay/rebuild.h"
#include "replay/source_watch.h"
#include "replay/worker_pool.h"

namespace kerncap::replay {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::Json;

constexpr std::chrono::milliseconds quiet{30};  // after the last write of a save
constexpr std::chrono::milliseconds longest_compile{600'000};

class Loop {
 public:
  explicit Loop(const Options& options)
      : options_(options),
        input_(resolve_input(options.input)),
        interruption_([this] { clean_up(); }),
        rebuild_(input_.project, input_.project / "build", longest_compile) {
    options_.mode = Mode::validate;
    rebuild_.cancel_fd = interruption_.fd();
    start_pool();
  }

  int run() {
    // Watched from before the first build on: nothing saved meanwhile is missed.
    SourceWatch files({input_.project / "src", input_.project / "jobs", input_.project / "overlay",
                       input_.project / "kerncap.toml", input_.project / "kernel.json",
                       input_.project / "CMakeLists.txt"});
    std::set<fs::path> changed;
    for (;;) {
      iterate(changed);
      if (interruption_.happened()) break;
      if (code_ == ExitCode::environment || code_ == ExitCode::bad_input) break;
      changed = files.wait(interruption_.fd(), quiet);
      if (changed.empty()) break;
    }
    return static_cast<int>(code_);
  }

 private:
  void start_pool() {
    pool_.reset();
    pool_.emplace(options_, true);
    scratch_ = pool_->scratch_folder();
    pool_->warm_up();
  }

  void clean_up() const {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }

  void answer(ExitCode code) {
    code_ = code;
    interruption_.exit_code = static_cast<int>(code);
  }

  void iterate(const std::set<fs::path>& changed) {
    std::vector<std::string> names;
    for (const fs::path& path : changed) names.push_back(path.lexically_relative(input_.project).string());
    // Rules and parameter types are read by the processes that compare.
    if (changed.contains(input_.project / "kerncap.toml") || changed.contains(input_.project / "kernel.json")) {
      start_pool();
      last_digest_.reset();
    }
    const Rebuilt built = rebuild_.run();
    if (interruption_.happened()) return;
    if (!built.succeeded) {
      answer(ExitCode::answer_is_no);
      say({{"event", "not compiled"}, {"changed", names}, {"compile_s", built.seconds}, {"messages", built.messages}},
          fmt::format("NOT compiled ({:.2f} s)\n{}", built.seconds, built.messages));
      return;
    }
    const std::string text = support::read_text_file(built.code_object);
    const auto digest = support::xxh3_128(std::as_bytes(std::span(text)));
    if (last_digest_ && *last_digest_ == digest && !names.empty()) {
      say({{"event", "same code"}, {"changed", names}, {"compile_s", built.seconds}},
          fmt::format("same code as before ({:.2f} s): {}", built.seconds, last_sentence_));
      return;
    }
    last_digest_ = digest;
    Options question = options_;
    question.code_object = built.code_object;
    const auto start = std::chrono::steady_clock::now();
    const Verdict verdict = judge(question, *pool_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    answer(exit_code(verdict.outcome));
    last_sentence_ = verdict.sentence;
    say({{"event", "verdict"},
         {"changed", names},
         {"compile_s", built.seconds},
         {"validate_s", seconds},
         {"verdict", to_json(verdict)}},
        fmt::format("{}  compiled in {:.2f} s, judged in {:.2f} s\n",
                    verdict.outcome == Outcome::matches ? verdict.sentence + "\n" : to_text(verdict), built.seconds,
                    seconds));
  }

  void say(const Json& event, std::string text) const {
    if (options_.json) {
      fmt::print("{}\n", event.dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      while (text.ends_with('\n')) text.pop_back();
      fmt::print("[{:%H:%M:%S}] {}\n", fmt::localtime(std::time(nullptr)), text);
    }
    std::fflush(stdout);
  }

  Options options_;
  const Input input_;
  fs::path scratch_;
  Interruption interruption_;
  Rebuild rebuild_;
  std::optional<WorkerPool> pool_;
  ExitCode code_ = ExitCode::done;
  std::optional<support::Hash128> last_digest_;
  std::string last_sentence_;
};

}  // namespace

int watch(const Options& options) {
  const Input input = resolve_input(options.input);
  if (input.project.empty()) {
    support::fail(ExitCode::usage, "'{}' is a snapshot; watch needs a project with sources", options.input.string());
  }
  return Loop(options).run();
}

}  // namespace kerncap::replay
