#include "softgpu/report.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kerncap::softgpu {
namespace {

void write_line(const char* line, std::size_t size) noexcept {
  // A raw call: standard error may be anything, and nothing can be done about a failure.
  [[maybe_unused]] const long written = syscall(SYS_write, STDERR_FILENO, line, size);
}

}  // namespace

void report(std::string_view message) noexcept {
  char line[2048];
  const int size = std::snprintf(line, sizeof line, "kerncap softgpu: %.*s\n",
                                 static_cast<int>(std::min(message.size(), std::size_t{1900})), message.data());
  write_line(line, static_cast<std::size_t>(std::max(size, 0)));
}

bool tracing() noexcept {
  static const bool on = [] {
    const char* value = std::getenv("KERNCAP_SOFTGPU_LOG");
    return value != nullptr && std::strcmp(value, "0") != 0 && *value != '\0';
  }();
  return on;
}

void trace(const char* format, ...) noexcept {
  if (!tracing()) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  report(text);
}

}  // namespace kerncap::softgpu
