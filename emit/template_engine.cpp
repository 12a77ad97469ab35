#include "emit/template_engine.h"

#include <kainjow/mustache.hpp>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::emit {
namespace {

using kainjow::mustache::data;
using support::ExitCode;
using support::fail;

data data_from(const support::Json& value) {
  if (value.is_object()) {
    data object(data::type::object);
    for (const auto& [key, member] : value.items()) object.set(key, data_from(member));
    return object;
  }
  if (value.is_array()) {
    data list(data::type::list);
    for (const auto& element : value) list.push_back(data_from(element));
    return list;
  }
  if (value.is_boolean()) return data(value.get<bool>() ? data::type::bool_true : data::type::bool_false);
  if (value.is_string()) {
    // An empty text is "not there" for sections.
    const auto& text = value.get_ref<const std::string&>();
    return text.empty() ? data(data::type::bool_false) : data(text);
  }
  if (value.is_null()) return data(data::type::bool_false);
  return data(value.dump());
}

}  // namespace

std::string cmake_escaped(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\' || c == '"' || c == '$' || c == ';') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

Templates::Templates(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder_, ignored))
    fail(ExitCode::environment, "the project templates are not in '{}'; the installation of Kerncap is incomplete",
         folder_.string());
}

std::string Templates::render(const std::string& name, const support::Json& values) const {
  const auto path = folder_ / name;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    fail(ExitCode::environment, "the project template '{}' is missing; the installation of Kerncap is incomplete",
         path.string());
  kainjow::mustache::mustache engine(support::read_text_file(path, 1 << 22));
  engine.set_custom_escape(cmake_escaped);
  if (!engine.is_valid())
    fail(ExitCode::environment, "the project template '{}' is malformed: {}", path.string(), engine.error_message());
  std::string text = engine.render(data_from(values));
  if (!engine.error_message().empty())
    fail(ExitCode::environment, "the project template '{}' cannot be filled in: {}", path.string(),
         engine.error_message());
  return text;
}

}  // namespace kerncap::emit
