#include "replay/project.h"

#include <charconv>
#include <cmath>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/json.h"

#if KERNCAP_REPLAY_TOML
#include <toml++/toml.h>
#endif

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;
using support::Json;

std::string optional_string(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>() : std::string();
}

std::uint64_t optional_unsigned(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_number_unsigned() ? object.at(key).get<std::uint64_t>() : 0;
}

// One setting of a rule by name; the same names serve the TOML file and the command line.
struct Setting {
  std::string_view name;
  void (*set)(ArgumentRule& rule, std::string_view value);  // throws std::invalid_argument
};

double parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || std::isinf(value)) {
    throw std::invalid_argument("a number that is not negative is needed");
  }
  return value;
}

std::uint64_t parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw std::invalid_argument("a whole number is needed");
  return value;
}

constexpr Setting settings[] = {
    {"absolute", [](ArgumentRule& r, std::string_view v) { r.absolute = parse_number(v); }},
    {"relative", [](ArgumentRule& r, std::string_view v) { r.relative = parse_number(v); }},
    {"ulp", [](ArgumentRule& r, std::string_view v) { r.ulps = parse_count(v); }},
    {"nan",
     [](ArgumentRule& r, std::string_view v) {
       r.nan = nan_policy(v);
       if (!r.nan) throw std::invalid_argument("the NaN policies are equal, same-bits and forbidden");
     }},
    {"type",
     [](ArgumentRule& r, std::string_view v) {
       r.type = element_type(v);
       if (!r.type) throw std::invalid_argument("this is no element type that can be compared");
     }},
};

// Short names for the command line.
constexpr std::pair<std::string_view, std::string_view> short_names[] = {
    {"abs", "absolute"}, {"rel", "relative"}, {"ulps", "ulp"}};

void set(ArgumentRule& rule, std::string_view name, std::string_view value) {
  for (const auto& [short_name, long_name] : short_names) {
    if (name == short_name) name = long_name;
  }
  for (const Setting& setting : settings) {
    if (setting.name == name) return setting.set(rule, value);
  }
  throw std::invalid_argument("the settings are absolute, relative, ulp, nan and type");
}

void apply(Tolerance& tolerance, const ArgumentRule& rule) {
  if (rule.absolute) tolerance.absolute = *rule.absolute;
  if (rule.relative) tolerance.relative = *rule.relative;
  if (rule.ulps) tolerance.ulps = *rule.ulps;
  if (rule.nan) tolerance.nan = *rule.nan;
}

#if KERNCAP_REPLAY_TOML
std::string value_text(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<std::int64_t>()) return std::to_string(*whole);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  throw std::invalid_argument("a number or a text is needed");
}
#endif

}  // namespace

KernelSource read_kernel_json(const std::filesystem::path& path) {
  const std::string what = "'" + path.string() + "'";
  const Json document = support::read_json_file(path);
  if (!document.is_object()) fail(ExitCode::bad_input, "{} is not a JSON object", what);
  KernelSource source;
  source.symbol = support::string_member(document, "symbol", what);
  source.demangled = optional_string(document, "demangled");
  source.file = optional_string(document, "file");
  source.first_line = optional_unsigned(document, "first_line");
  source.last_line = optional_unsigned(document, "last_line");
  if (!document.contains("parameters")) return source;
  for (const Json& entry : support::array_member(document, "parameters", what)) {
    if (!entry.is_object()) fail(ExitCode::bad_input, "{}: a parameter is not a JSON object", what);
    SourceParameter parameter;
    parameter.index = static_cast<int>(support::unsigned_member(entry, "index", what));
    parameter.name = optional_string(entry, "name");
    parameter.type = optional_string(entry, "type");
    parameter.element = optional_string(entry, "element");
    if (parameter.element.empty()) parameter.element = optional_string(entry, "pointee");
    source.parameters.push_back(std::move(parameter));
  }
  return source;
}

ValidateRules read_rules(const std::filesystem::path& path) {
  ValidateRules rules;
  const std::string text = support::read_text_file(path, 1u << 20);
#if KERNCAP_REPLAY_TOML
  try {
    const toml::table document = toml::parse(text, path.string());
    const toml::table* validate = document["validate"].as_table();
    if (validate == nullptr) return rules;
    for (const auto& [key, node] : *validate) {
      const std::string name(key.str());
      try {
        if (name == "noise_runs") {
          rules.noise_runs = static_cast<unsigned>(std::min<std::uint64_t>(parse_count(value_text(node)), 1000));
        } else if (name == "argument") {
          if (!node.is_table()) throw std::invalid_argument("a table is needed");
          for (const auto& [argument, entry] : *node.as_table()) {
            if (!entry.is_table()) throw std::invalid_argument("a table is needed");
            ArgumentRule& rule = rules.arguments[std::string(argument.str())];
            for (const auto& [setting, value] : *entry.as_table()) {
              if (setting.str() == "ignore") {
                rule.ignore = value.value_or(false);
              } else {
                set(rule, setting.str(), value_text(value));
              }
            }
          }
        } else {
          ArgumentRule rule;
          set(rule, name, value_text(node));
          apply(rules.tolerance, rule);
        }
      } catch (const std::invalid_argument& error) {
        fail(ExitCode::bad_input, "'{}': validate.{}: {}", path.string(), name, error.what());
      }
    }
  } catch (const toml::parse_error& error) {
    fail(ExitCode::bad_input, "'{}', line {}: {}", path.string(), error.source().begin.line, error.description());
  }
#else
  if (text.find("[validate") != std::string::npos) {
    fail(ExitCode::environment,
         "'{}' has validation settings, but this replayer was built without tomlplusplus; install its headers "
         "(libtomlplusplus-dev) and build again, or give the settings with --tolerance",
         path.string());
  }
#endif
  return rules;
}

void add_rule(ValidateRules& rules, std::string_view text) {
  try {
    std::string_view rest = text;
    std::string argument;
    if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
      argument = std::string(rest.substr(0, colon));
      rest = rest.substr(colon + 1);
    }
    if (rest == "ignore" && !argument.empty()) {
      rules.arguments[argument].ignore = true;
      return;
    }
    const auto equals = rest.find('=');
    if (equals == std::string_view::npos) throw std::invalid_argument("NAME=VALUE is needed");
    if (!argument.empty()) return set(rules.arguments[argument], rest.substr(0, equals), rest.substr(equals + 1));
    ArgumentRule rule;
    set(rule, rest.substr(0, equals), rest.substr(equals + 1));
    if (rule.type) throw std::invalid_argument("a type belongs to an argument: ARGUMENT:type=TYPE");
    apply(rules.tolerance, rule);
  } catch (const std::invalid_argument& error) {
    fail(ExitCode::usage, "--tolerance {}: {}", text, error.what());
  }
}

Input resolve_input(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  Input input;
  if (fs::is_regular_file(path / "manifest.json", ignored)) {
    input.snapshot = path;
    return input;
  }
  if (!fs::is_regular_file(path / "snapshot" / "manifest.json", ignored)) {
    fail(ExitCode::usage, "'{}' is neither a snapshot (no manifest.json) nor a project (no snapshot/manifest.json)",
         path.string());
  }
  input.project = path;
  input.snapshot = path / "snapshot";
  if (fs::is_regular_file(path / "build" / "kernel.hsaco", ignored))
    input.code_object = path / "build" / "kernel.hsaco";
  if (fs::is_regular_file(path / "kernel.json", ignored)) input.kernel_json = path / "kernel.json";
  if (fs::is_regular_file(path / "kerncap.toml", ignored)) input.rules = path / "kerncap.toml";
  return input;
}

}  // namespace kerncap::replay
