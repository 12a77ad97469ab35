#include "core/codeobject/target_id.h"

#include <algorithm>
#include <vector>

namespace kerncap::codeobject {

std::string normalise_target(std::string_view target) {
  std::vector<std::string_view> parts;
  while (true) {
    auto colon = target.find(':');
    parts.push_back(target.substr(0, colon));
    if (colon == std::string_view::npos) break;
    target.remove_prefix(colon + 1);
  }
  std::sort(parts.begin() + 1, parts.end());
  std::string result(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!parts[i].empty()) result.append(":").append(parts[i]);
  return result;
}

std::string target_of_entry(std::string_view entry_id) {
  auto processor = entry_id.find("-gfx");
  if (processor != std::string_view::npos) {
    entry_id.remove_prefix(processor + 1);
    // A trailing dash is an empty triple component, unless it switches a feature off ("xnack-").
    if (entry_id.ends_with('-') && entry_id.find(':') == std::string_view::npos) entry_id.remove_suffix(1);
    return normalise_target(entry_id);
  }
  while (entry_id.ends_with('-')) entry_id.remove_suffix(1);
  auto dash = entry_id.rfind("--");
  if (dash != std::string_view::npos) return std::string(entry_id.substr(dash + 2));
  dash = entry_id.rfind('-');
  return std::string(dash == std::string_view::npos ? entry_id : entry_id.substr(dash + 1));
}

bool is_host_entry(std::string_view entry_id) { return entry_id.starts_with("host"); }

}  // namespace kerncap::codeobject
