#include "softgpu/virtual_tree.h"

#include <algorithm>

namespace kerncap::softgpu {
namespace {

// "/dev/dri" as prefix also covers "/dev/dri/renderD128" but not "/dev/drive".
constexpr std::string_view owned_prefixes[] = {
    "/dev/kfd", "/dev/dri", "/sys/class/kfd", "/sys/devices/virtual/kfd", "/sys/class/drm", "/sys/module/amdgpu",
};
// Prefixes where any continuation belongs to the tree ("/sys/dev/char/226:128").
constexpr std::string_view owned_stems[] = {"/sys/dev/char/226:"};

// rocminfo looks for a line "amdgpu" here.
constexpr std::string_view owned_files[] = {"/proc/modules"};

}  // namespace

bool VirtualTree::owns(std::string_view path) noexcept {
  if (path.size() < 8 || path[0] != '/') return false;
  if (path[1] != 'd' && path[1] != 's' && path[1] != 'p') return false;
  for (const std::string_view prefix : owned_prefixes) {
    if (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/')) return true;
  }
  for (const std::string_view stem : owned_stems) {
    if (path.starts_with(stem)) return true;
  }
  return std::ranges::find(owned_files, path) != std::end(owned_files);
}

std::string VirtualTree::normalise(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t start = path.find_first_not_of('/');
    if (start == std::string_view::npos) break;
    path.remove_prefix(start);
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part == ".") continue;
    if (part == "..") {
      result.resize(result.empty() ? 0 : result.rfind('/'));
      continue;
    }
    result += '/';
    result += part;
  }
  return result.empty() ? "/" : result;
}

TreeNode& VirtualTree::insert(const std::string& path, NodeKind kind) {
  const auto found = nodes_.find(path);
  if (found != nodes_.end()) {
    found->second.kind = kind;
    return found->second;
  }
  TreeNode& node = nodes_[path];
  node.kind = kind;
  node.inode = nodes_.size();
  const std::size_t slash = path.rfind('/');
  if (slash != 0 && slash != std::string::npos) {
    const std::string parent = path.substr(0, slash);
    if (!nodes_.contains(parent)) insert(parent, NodeKind::folder);
    nodes_[parent].children.push_back(path.substr(slash + 1));
  }
  return node;
}

void VirtualTree::add_text(const std::string& path, std::string content) {
  insert(path, NodeKind::text).text = std::move(content);
}
void VirtualTree::add_folder(const std::string& path) { insert(path, NodeKind::folder); }
void VirtualTree::add_kfd_device(const std::string& path) { insert(path, NodeKind::kfd_device); }
void VirtualTree::add_drm_device(const std::string& path, unsigned minor) {
  insert(path, NodeKind::drm_device).minor = minor;
}
void VirtualTree::add_link(const std::string& path, std::string target) {
  insert(path, NodeKind::link).text = std::move(target);
}

const TreeNode* VirtualTree::find_link(std::string_view path) const {
  const auto found = nodes_.find(path);
  return found == nodes_.end() ? nullptr : &found->second;
}

const TreeNode* VirtualTree::find(std::string_view path, std::string* resolved) const {
  std::string current = normalise(path);
  for (int links = 0; links < 8; ++links) {
    const auto found = nodes_.find(current);
    if (found != nodes_.end() && found->second.kind != NodeKind::link) {
      if (resolved != nullptr) *resolved = current;
      return &found->second;
    }
    // The longest leading part that is a link is replaced by its target.
    std::string next;
    for (std::size_t end = current.size(); end != 0; end = current.rfind('/', end - 1)) {
      const auto part = nodes_.find(std::string_view(current).substr(0, end));
      if (part != nodes_.end() && part->second.kind == NodeKind::link) {
        next = normalise(part->second.text + current.substr(end));
        break;
      }
      if (end == 1) break;
    }
    if (next.empty()) return nullptr;
    current = std::move(next);
  }
  return nullptr;
}

}  // namespace kerncap::softgpu
