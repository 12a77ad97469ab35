#include "replay/server.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <optional>

#include "core/snapshot/reader.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "replay/interruption.h"
#include "replay/judge.h"
#include "replay/line_reader.h"
#include "replay/rebuild.h"
#include "replay/worker_pool.h"

namespace kerncap::replay {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::Json;

constexpr const char* protocol = "kerncap.serve/1";
constexpr std::uint64_t largest_code_object = std::uint64_t{256} << 20;

// An answer that is no: the codes of docs/protocol.md.
struct Refusal {
  std::string code, message;
  Json details = Json::object();
};

std::string text_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (!found->is_string()) throw Refusal{"bad_request", fmt::format("'{}' has to be a string", key)};
  return found->get<std::string>();
}

bool flag_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  if (!found->is_boolean()) throw Refusal{"bad_request", fmt::format("'{}' has to be true or false", key)};
  return found->get<bool>();
}

std::optional<double> number_member(const Json& object, const char* key, double most) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (!found->is_number() || !(found->get<double>() > 0) || found->get<double>() > most) {
    throw Refusal{"bad_request", fmt::format("'{}' has to be a number above 0, at most {}", key, most)};
  }
  return found->get<double>();
}

// What each method takes beside "id" and "method"; anything else is refused, because a misspelt limit must not pass.
struct Method {
  const char* name;
  std::vector<std::string_view> parameters;
};
constexpr std::array<std::string_view, 5> ways_to_name_a_candidate{"candidate", "source", "file", "files",
                                                                   "code_object"};

const std::vector<Method>& methods() {
  static const std::vector<Method> table{
      {"hello", {}},
      {"compile", {"source", "file", "files", "timeout"}},
      {"validate",
       {"candidate", "source", "file", "files", "code_object", "captured", "timeout", "compile_timeout", "iterations",
        "captured_inputs_only", "all_arguments", "fresh_process"}},
      {"bench",
       {"candidate", "source", "file", "files", "code_object", "captured", "timeout", "compile_timeout", "iterations",
        "captured_inputs_only", "cold", "vs", "seconds", "threshold", "fresh_process"}},
      {"shutdown", {}},
  };
  return table;
}

class Server {
 public:
  Server(const Options& options, int in, int out, const ServeLimits& limits)
      : options_(options),
        input_(resolve_input(options.input)),
        limits_(limits),
        out_(out),
        lines_(in, limits.line_bytes),
        scratch_("kerncap-serve"),
        interruption_([this] { clean_up(); }),
        pool_(options, true) {
    options_.json = true;
    fs::create_directory(scratch_.path() / "candidates");
    pool_.warm_up();
  }

  int run() {
    for (std::string line;;) {
      switch (lines_.next(line, interruption_.fd())) {
        case LineReader::Got::end:
        case LineReader::Got::cancelled:
          return 0;
        case LineReader::Got::too_long:
          send_error(nullptr, {"too_large", fmt::format("a request has at most {} bytes", limits_.line_bytes)});
          continue;
        case LineReader::Got::line:
          break;
      }
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (!answer(line)) return 0;
    }
  }

 private:
  void clean_up() const {
    std::error_code ignored;
    fs::remove_all(scratch_.path(), ignored);
    fs::remove_all(pool_.scratch_folder(), ignored);
  }

  void send(const Json& message) const {
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    support::write_all(out_, std::as_bytes(std::span(line)), "the answer");
  }
  void send_error(const Json& id, const Refusal& refusal) const {
    Json error{{"code", refusal.code}, {"message", refusal.message}};
    for (const auto& [key, value] : refusal.details.items()) error[key] = value;
    send({{"id", id}, {"ok", false}, {"error", error}});
  }

  // False: that was the last one.
  bool answer(const std::string& line) {
    Json id = nullptr;
    try {
      Json request;
      try {
        request = support::parse_json(line, "the request");
      } catch (const support::Error& error) {
        throw Refusal{"bad_request", error.what()};
      }
      if (!request.is_object()) throw Refusal{"bad_request", "a request is one JSON object on one line"};
      if (request.contains("id")) {
        if (!request["id"].is_string() && !request["id"].is_number() && !request["id"].is_null())
          throw Refusal{"bad_request", "'id' has to be a string or a number"};
        id = request["id"];
      }
      const std::string name = text_member(request, "method");
      const auto method =
          std::find_if(methods().begin(), methods().end(), [&](const Method& m) { return name == m.name; });
      if (method == methods().end())
        throw Refusal{"unknown_method", fmt::format("there is no method '{}'", name.substr(0, 100))};
      for (const auto& [key, value] : request.items()) {
        if (key == "id" || key == "method") continue;
        if (std::find(method->parameters.begin(), method->parameters.end(), key) == method->parameters.end())
          throw Refusal{"bad_request", fmt::format("'{}' takes no '{}'", name, key.substr(0, 100))};
      }
      const Json result = name == "hello"      ? hello()
                          : name == "compile"  ? compile(request, "timeout").result
                          : name == "validate" ? judged(request, Mode::validate)
                          : name == "bench"    ? judged(request, Mode::bench)
                                               : Json::object();
      send({{"id", id}, {"ok", true}, {"result", result}});
      return name != "shutdown";
    } catch (const Refusal& refusal) {
      send_error(id, refusal);
    } catch (const support::Error& error) {
      const bool ours = error.code() == ExitCode::environment;
      send_error(id, {ours                              ? "environment"
                      : error.code() == ExitCode::usage ? "bad_request"
                                                        : "bad_input",
                      error.what()});
    } catch (const std::exception& error) {
      send_error(id, {"internal", error.what()});
    }
    return true;
  }

  Json hello() {
    const snapshot::Reader reader(input_.snapshot);
    const auto& dispatches = reader.manifest().dispatches;
    if (options_.dispatch >= dispatches.size()) {
      throw Refusal{"bad_input", fmt::format("the snapshot has {} dispatches", dispatches.size())};
    }
    const snapshot::Dispatch& dispatch = dispatches[options_.dispatch];
    const auto agent = static_cast<std::size_t>(std::max(dispatch.agent, 0));
    std::vector<std::string> names;
    for (const Method& method : methods()) names.emplace_back(method.name);
    Json result{{"protocol", protocol},
                {"version", KERNCAP_REPLAY_VERSION},
                {"methods", names},
                {"kernel", dispatch.kernel_demangled.empty() ? dispatch.kernel_symbol : dispatch.kernel_demangled},
                {"symbol", dispatch.kernel_symbol},
                {"isa", agent < reader.manifest().agents.size() ? reader.manifest().agents[agent].isa : ""},
                {"can_compile", !input_.project.empty()}};
    if (CandidateSources* const sources = candidate_sources(); sources != nullptr && !sources->kernel_file().empty())
      result["source_file"] = sources->kernel_file();
    result["can_compile"] = sources_.has_value();
    result["limits"] = {{"request_bytes", limits_.line_bytes},        {"candidates", limits_.candidates},
                        {"compile_seconds", limits_.compile_seconds}, {"run_seconds", limits_.run_seconds},
                        {"bench_seconds", limits_.bench_seconds},     {"iterations", limits_.iterations}};
    return result;
  }

  // Null where there is nothing to compile.
  CandidateSources* candidate_sources() {
    if (sources_) return &*sources_;
    if (input_.project.empty()) return nullptr;
    try {
      const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(limits_.compile_seconds * 1000));
      sources_.emplace(input_.project, scratch_.path(), limit);
      return &*sources_;
    } catch (const support::Error& error) {
      if (error.code() != ExitCode::usage) throw;
      return nullptr;
    }
  }

  struct Compiled {
    Json result;
    fs::path code_object;
    double seconds = 0;
  };

  Compiled compile(const Json& request, const char* timeout_name) {
    std::map<std::string, std::string> files;
    CandidateSources* const sources = candidate_sources();
    if (sources == nullptr)
      throw Refusal{"cannot_compile", "there is no project with sources here; give a code object"};
    const auto kernel_file = [&]() -> const std::string& {
      if (sources->kernel_file().empty())
        throw Refusal{"bad_request", "the project does not say which file defines the kernel; use 'files'"};
      return sources->kernel_file();
    };
    if (request.contains("files")) {
      if (!request["files"].is_object()) throw Refusal{"bad_request", "'files' has to map names to texts"};
      for (const auto& [name, text] : request["files"].items()) {
        if (!text.is_string()) throw Refusal{"bad_request", "'files' has to map names to texts"};
        files[name] = text.get<std::string>();
      }
    } else if (request.contains("source")) {
      files[kernel_file()] = text_member(request, "source");
    } else if (request.contains("file")) {
      files[kernel_file()] = support::read_text_file(text_member(request, "file"), limits_.line_bytes);
    } else {
      throw Refusal{"bad_request", "a candidate is given by 'source', 'file' or 'files'"};
    }
    const auto limit = number_member(request, timeout_name, limits_.compile_seconds).value_or(limits_.compile_seconds);
    const Rebuilt built =
        sources->compile(files, std::chrono::milliseconds(static_cast<std::int64_t>(limit * 1000)), interruption_.fd());
    if (!built.succeeded) {
      throw Refusal{built.timed_out ? "compile_timed_out" : "compile_failed",
                    built.timed_out ? fmt::format("the compiler did not end within {} s", limit)
                                    : std::string("the candidate does not compile"),
                    {{"messages", built.messages}, {"seconds", built.seconds}}};
    }
    Compiled compiled;
    const std::string name = fmt::format("c{}", ++made_);
    compiled.code_object = scratch_.path() / "candidates" / (name + ".hsaco");
    compiled.seconds = built.seconds;
    fs::copy_file(built.code_object, compiled.code_object);
    remember(name, compiled.code_object);
    const std::string bytes = support::read_text_file(compiled.code_object, largest_code_object);
    compiled.result = {{"candidate", name},
                       {"code_object", support::sha256_hex(std::as_bytes(std::span(bytes)))},
                       {"seconds", built.seconds},
                       {"messages", built.messages}};
    return compiled;
  }

  void remember(const std::string& name, const fs::path& file) {
    candidates_.emplace_back(name, file);
    if (candidates_.size() <= limits_.candidates) return;
    std::error_code ignored;
    fs::remove(candidates_.front().second, ignored);
    candidates_.pop_front();
  }

  fs::path file_of(const std::string& name) const {
    for (const auto& [known, file] : candidates_) {
      if (known == name) return file;
    }
    throw Refusal{"no_such_candidate", fmt::format("there is no candidate '{}' (the last {} are kept)",
                                                   name.substr(0, 100), limits_.candidates)};
  }

  Json judged(const Json& request, Mode mode) {
    Options question = options_;
    question.mode = mode;
    const auto given = std::count_if(ways_to_name_a_candidate.begin(), ways_to_name_a_candidate.end(),
                                     [&](std::string_view key) { return request.contains(key); }) +
                       (flag_member(request, "captured") ? 1 : 0);
    if (given != 1) {
      throw Refusal{"bad_request",
                    "exactly one of 'candidate', 'source', 'file', 'files', 'code_object' and 'captured' is needed"};
    }
    Json result = Json::object();
    question.code_object.reset();
    question.captured = flag_member(request, "captured");
    if (request.contains("candidate")) {
      question.code_object = file_of(text_member(request, "candidate"));
      result["candidate"] = request["candidate"];
    } else if (request.contains("code_object")) {
      question.code_object = text_member(request, "code_object");
    } else if (!question.captured) {
      const Compiled compiled = compile(request, "compile_timeout");
      question.code_object = compiled.code_object;
      result["candidate"] = compiled.result["candidate"];
      result["compile_seconds"] = compiled.seconds;
    }
    if (const auto timeout = number_member(request, "timeout", limits_.run_seconds))
      question.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*timeout * 1000)));
    if (const auto iterations = number_member(request, "iterations", static_cast<double>(limits_.iterations)))
      question.iterations = static_cast<std::uint64_t>(*iterations);
    question.changed_inputs = options_.changed_inputs && !flag_member(request, "captured_inputs_only");
    question.all_parts = flag_member(request, "all_arguments");
    question.cold = flag_member(request, "cold");
    if (const auto seconds = number_member(request, "seconds", limits_.bench_seconds)) question.seconds = *seconds;
    if (const auto threshold = number_member(request, "threshold", 1)) question.threshold = *threshold;
    if (const std::string versus = text_member(request, "vs"); !versus.empty()) {
      const bool known = std::any_of(candidates_.begin(), candidates_.end(),
                                     [&](const auto& candidate) { return candidate.first == versus; });
      question.versus = known ? file_of(versus).string() : versus;
    }
    if (flag_member(request, "fresh_process")) pool_.drop_subject();
    const auto start = std::chrono::steady_clock::now();
    const Verdict verdict = judge(question, pool_);
    result["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result["valid"] = verdict.outcome == Outcome::matches;
    result["verdict"] = to_json(verdict);
    return result;
  }

  Options options_;
  const Input input_;
  const ServeLimits limits_;
  const int out_;
  LineReader lines_;
  support::TemporaryFolder scratch_;
  Interruption interruption_;
  WorkerPool pool_;
  std::optional<CandidateSources> sources_;
  std::deque<std::pair<std::string, fs::path>> candidates_;
  std::uint64_t made_ = 0;
};

}  // namespace

int serve(const Options& options, int in, int out, const ServeLimits& limits) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return Server(options, in, out, limits).run();
  } catch (const support::Error& error) {
    // Nobody reads the answers any more: that ends the session like the end of input.
    if (std::string_view(error.what()).find("the answer") != std::string_view::npos) return 0;
    throw;
  }
}

}  // namespace kerncap::replay
