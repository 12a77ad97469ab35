#include "core/support/json.h"

#include <charconv>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::support {
namespace {

constexpr std::size_t deepest_nesting = 100;

// nlohmann's parser does not recurse, but destroying and walking a document does.
void check_depth(std::string_view text, std::string_view what) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest_nesting)
        fail(ExitCode::bad_input, "{}: JSON nested deeper than {} levels", what, deepest_nesting);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  check_depth(text, what);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(ExitCode::bad_input, "{}: not valid JSON: {}", what, error.what());
  }
}

Json read_json_file(const std::filesystem::path& path) { return parse_json(read_text_file(path), path.string()); }

std::string dump_json(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

const Json& member(const Json& object, const char* key, std::string_view what) {
  if (!object.is_object()) fail(ExitCode::bad_input, "{}: an object was expected where '{}' should be", what, key);
  const auto found = object.find(key);
  if (found == object.end()) fail(ExitCode::bad_input, "{}: '{}' is missing", what, key);
  return *found;
}

std::string string_member(const Json& object, const char* key, std::string_view what) {
  const Json& value = member(object, key, what);
  if (!value.is_string()) fail(ExitCode::bad_input, "{}: '{}' is not a string", what, key);
  return value.get<std::string>();
}

std::uint64_t unsigned_member(const Json& object, const char* key, std::string_view what) {
  const Json& value = member(object, key, what);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    std::uint64_t number = 0;
    if (text.starts_with("0x") && text.size() > 2) {
      const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
      if (error == std::errc{} && end == text.data() + text.size()) return number;
    }
  }
  fail(ExitCode::bad_input, "{}: '{}' is not a number from 0 to 2^64 - 1", what, key);
}

bool bool_member(const Json& object, const char* key, std::string_view what) {
  const Json& value = member(object, key, what);
  if (!value.is_boolean()) fail(ExitCode::bad_input, "{}: '{}' is not true or false", what, key);
  return value.get<bool>();
}

const Json& array_member(const Json& object, const char* key, std::string_view what) {
  const Json& value = member(object, key, what);
  if (!value.is_array()) fail(ExitCode::bad_input, "{}: '{}' is not a list", what, key);
  return value;
}

std::string hex_string(std::uint64_t value) { return fmt::format("{:#x}", value); }

}  // namespace kerncap::support
