#include "core/support/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace kerncap::support {

bool colour_allowed(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");  // https://no-color.org
  const char* terminal = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return ::isatty(fd) == 1;
}

void start_logging(std::string_view program, int verbosity) {
  const auto mode = colour_allowed(STDERR_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(mode);
  auto logger = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  logger->set_pattern("%n: %^%l%$: %v");
  logger->set_level(verbosity >= 2 ? spdlog::level::debug : verbosity == 1 ? spdlog::level::info : spdlog::level::warn);
  if (const char* level = std::getenv("KERNCAP_LOG"); level != nullptr && *level != '\0') {
    logger->set_level(spdlog::level::from_str(level));
  }
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace kerncap::support
