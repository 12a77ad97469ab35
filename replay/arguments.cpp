#include "replay/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

bool inside(const snapshot::Region& region, std::uint64_t address) {
  return address >= region.address && address - region.address < region.size;
}

bool in_any_region(const snapshot::Dispatch& dispatch, std::uint64_t address) {
  return std::any_of(dispatch.regions.begin(), dispatch.regions.end(),
                     [&](const snapshot::Region& region) { return inside(region, address); });
}

const SourceParameter* source_parameter(const std::optional<KernelSource>& source, int index) {
  if (!source) return nullptr;
  for (const SourceParameter& parameter : source->parameters) {
    if (parameter.index == index) return &parameter;
  }
  return nullptr;
}

}  // namespace

std::string Argument::label() const {
  std::string text = name.empty() ? fmt::format("argument {}", index) : fmt::format("argument {} '{}'", index, name);
  if (member) text += fmt::format(", member at byte {}", *member);
  return text;
}

const ArgumentRule* rule_for(const Argument& argument, const ValidateRules& rules) {
  for (const std::string& key : {argument.name, std::to_string(argument.index)}) {
    if (const auto found = rules.arguments.find(key); !key.empty() && found != rules.arguments.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

void check_rules(const std::vector<Argument>& arguments, const ValidateRules& rules) {
  for (const auto& [key, rule] : rules.arguments) {
    const bool known = std::any_of(arguments.begin(), arguments.end(), [&key = key](const Argument& a) {
      return key == a.name || key == std::to_string(a.index);
    });
    if (!known) {
      support::fail(support::ExitCode::usage,
                    "a tolerance is given for '{}', but the kernel has no argument of that name "
                    "or index",
                    key);
    }
  }
}

std::vector<Argument> kernel_arguments(const snapshot::Dispatch& dispatch, std::span<const std::byte> kernarg,
                                       const std::optional<KernelSource>& source, const ValidateRules& rules) {
  const std::vector<std::string> types =
      parameter_types(!dispatch.kernel_demangled.empty() ? dispatch.kernel_demangled : dispatch.kernel.demangled);
  std::vector<Argument> result;
  for (const codeobject::KernelArgument& entry : dispatch.kernel.arguments) {
    if (entry.hidden()) continue;
    Argument argument;
    argument.index = static_cast<int>(result.size());
    argument.name = entry.name;
    argument.offset = entry.offset;
    argument.size = entry.size;
    const SourceParameter* parameter = source_parameter(source, argument.index);
    if (parameter != nullptr && !parameter->name.empty()) argument.name = parameter->name;
    // The source knows best, then the metadata's own type name, then the demangled name.
    std::string element;
    if (parameter != nullptr && !parameter->type.empty()) {
      argument.type = parameter->type;
      element = parameter->element;
    } else if (!entry.type_name.empty()) {
      argument.type = entry.type_name;
    } else if (result.size() < types.size()) {
      argument.type = types[result.size()];
    }
    if (element.empty()) element = pointee(argument.type).value_or("");
    argument.element = element_type(element).value_or(ElementType::bytes);
    const std::string target = pointee(argument.type).value_or("");
    argument.points_to_const = target.starts_with("const ") || target.ends_with(" const") || entry.is_const;
    // A pointer is 8 bytes; a structure passed by value may hold pointers too, but has no element type of its own.
    if (entry.size == 8 && std::uint64_t{entry.offset} + 8 <= kernarg.size() && entry.value_kind != "by_value") {
      std::uint64_t value = 0;
      std::memcpy(&value, kernarg.data() + entry.offset, sizeof value);
      if (in_any_region(dispatch, value)) argument.pointer = value;
    }
    if (const ArgumentRule* rule = rule_for(argument, rules); rule != nullptr && rule->type) {
      argument.element = *rule->type;
    }
    result.push_back(std::move(argument));
  }
  const std::size_t parameters = result.size();
  for (std::size_t i = 0; i < parameters; ++i) {
    if (result[i].pointer || result[i].size < 8) continue;
    const std::uint64_t end = std::min<std::uint64_t>(std::uint64_t{result[i].offset} + result[i].size, kernarg.size());
    for (std::uint64_t at = (result[i].offset + 7u) / 8u * 8u; at + 8 <= end; at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, kernarg.data() + at, sizeof value);
      if (!in_any_region(dispatch, value)) continue;
      Argument member = result[i];
      member.member = static_cast<std::uint32_t>(at - result[i].offset);
      member.pointer = value;
      if (const ArgumentRule* rule = rule_for(member, rules); rule == nullptr || !rule->type)
        member.element = ElementType::bytes;
      result.push_back(std::move(member));
    }
  }
  return result;
}

std::vector<Span> spans_of(const snapshot::Region& region, const std::vector<Argument>& arguments,
                           const ValidateRules& rules) {
  std::vector<std::size_t> here;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].pointer && inside(region, *arguments[i].pointer)) here.push_back(i);
  }
  std::stable_sort(here.begin(), here.end(),
                   [&](std::size_t a, std::size_t b) { return *arguments[a].pointer < *arguments[b].pointer; });
  std::vector<Span> result;
  const std::uint64_t end = region.address + region.size;
  std::uint64_t at = region.address;
  const auto add = [&](std::uint64_t to, int argument) {
    if (to <= at) return;
    Span span{at, to - at, argument, ElementType::bytes, rules.tolerance, false};
    if (argument >= 0) {
      const Argument& owner = arguments[static_cast<std::size_t>(argument)];
      span.element = owner.element;
      if (const ArgumentRule* rule = rule_for(owner, rules)) {
        span.tolerance.absolute = rule->absolute.value_or(span.tolerance.absolute);
        span.tolerance.relative = rule->relative.value_or(span.tolerance.relative);
        span.tolerance.ulps = rule->ulps.value_or(span.tolerance.ulps);
        span.tolerance.nan = rule->nan.value_or(span.tolerance.nan);
        span.ignore = rule->ignore;
      }
    }
    result.push_back(span);
    at = to;
  };
  int owner = -1;
  for (const std::size_t index : here) {
    const std::uint64_t pointer = *arguments[index].pointer;
    // Several arguments with the same pointer: the first with a known element type names the span.
    if (owner >= 0 && pointer == at && arguments[static_cast<std::size_t>(owner)].pointer == arguments[index].pointer) {
      if (arguments[static_cast<std::size_t>(owner)].element == ElementType::bytes) owner = static_cast<int>(index);
      continue;
    }
    add(pointer, owner);
    owner = static_cast<int>(index);
  }
  add(end, owner);
  return result;
}

}  // namespace kerncap::replay
