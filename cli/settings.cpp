#include "cli/settings.h"

#include <toml++/toml.h>

#include <cstdlib>
#include <map>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::cli {
namespace {

using support::ExitCode;
using support::fail;

std::filesystem::path nearest_file(std::filesystem::path folder) {
  while (true) {
    std::error_code ignored;
    const std::filesystem::path candidate = folder / "kerncap.toml";
    if (std::filesystem::is_regular_file(candidate, ignored)) return candidate;
    if (folder == folder.root_path() || folder.empty()) return {};
    folder = folder.parent_path();
  }
}

std::string text_of(const toml::node& node, const std::string& where) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  fail(ExitCode::bad_input, "{}: a string was expected", where);
}

}  // namespace

Settings load_settings(const std::filesystem::path& start) {
  Settings settings;
  settings.file = nearest_file(std::filesystem::absolute(start));
  if (!settings.file.empty()) {
    toml::table document;
    try {
      document = toml::parse(support::read_text_file(settings.file, 1 << 20), settings.file.string());
    } catch (const toml::parse_error& error) {
      fail(ExitCode::bad_input, "{}:{}: {}", settings.file.string(), error.source().begin.line, error.description());
    }
    for (const auto& [key, node] : document) {
      const std::string name(key.str());
      const std::string where = fmt::format("{}:{}: '{}'", settings.file.string(), node.source().begin.line, name);
      if (name == "database") {
        settings.database = settings.file.parent_path() / text_of(node, where);
      } else if (name == "softgpu") {
        settings.softgpu = text_of(node, where);
      } else if (name == "sources") {
        settings.sources = text_of(node, where);
        if (settings.sources != "reference" && settings.sources != "archive") {
          fail(ExitCode::bad_input, "{}: 'reference' or 'archive' was expected", where);
        }
      } else if (const toml::table* table = node.as_table(); name == "replay" && table != nullptr) {
        if (const auto timeout = (*table)["timeout"].value<std::int64_t>()) {
          if (*timeout <= 0) fail(ExitCode::bad_input, "{}: 'timeout' is a number of seconds above 0", where);
          settings.timeout_seconds = static_cast<std::uint64_t>(*timeout);
        }
      }
      // Other tables ([project], [validate], ...) belong to emitted projects and are read by the replayer.
    }
  }
  if (const char* database = std::getenv("KERNCAP_DB"); database != nullptr && *database != '\0') {
    settings.database = database;
  }
  if (const char* softgpu = std::getenv("KERNCAP_SOFTGPU"); softgpu != nullptr && *softgpu != '\0') {
    settings.softgpu = softgpu;
  }
  return settings;
}

}  // namespace kerncap::cli
