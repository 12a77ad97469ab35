// The one error type of Kerncap.
//
// Every failure that a user can meet is thrown as `kerncap::support::Error` with one clear sentence (what, where, what
// to do) and the exit code that a script sees. Programs catch it in main(); libraries that live in other people's
// processes (capture, softgpu) catch everything at their entry points and never let it cross them.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace kerncap::support {

// Exit codes of every Kerncap program; scripts lean on them.
enum class ExitCode : int {
  done = 0,
  answer_is_no = 1,        // validation failed, kernel not seen, rebuild differs
  usage = 2,               // wrong flags or arguments
  environment = 3,         // this machine lacks something
  bad_input = 4,           // an input is corrupt or unsupported
  application_failed = 5,  // the user's application itself failed
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

template <typename... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace kerncap::support
