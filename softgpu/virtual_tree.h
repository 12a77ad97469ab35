// Files and folders that exist only inside this process: what the amdgpu driver would show in /sys, /dev and /proc.
// Built once, then read-only, so lookups need no lock.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kerncap::softgpu {

enum class NodeKind { folder, text, kfd_device, drm_device, link };

struct TreeNode {
  NodeKind kind = NodeKind::folder;
  std::string text;                   // a file's content, or a link's target
  unsigned minor = 0;                 // of a DRM device
  unsigned long inode = 0;            // unique in the tree
  std::vector<std::string> children;  // names inside a folder
};

class VirtualTree {
 public:
  // Parents come into being by themselves. Paths are absolute and normal.
  void add_text(const std::string& path, std::string content);
  void add_folder(const std::string& path);
  void add_kfd_device(const std::string& path);
  void add_drm_device(const std::string& path, unsigned minor);
  void add_link(const std::string& path, std::string target);  // target: absolute, inside the tree

  // The node that a path names, following links; null when the tree has none. `resolved` becomes its real path.
  const TreeNode* find(std::string_view path, std::string* resolved = nullptr) const;
  // The node itself, even when it is a link.
  const TreeNode* find_link(std::string_view path) const;

  // True when the path is in a place that the tree owns as a whole: what is not in the tree does not exist there, even
  // when the real system has it. Async-signal-safe and free of allocations, because every open() of the process asks.
  static bool owns(std::string_view path) noexcept;

  // Normal form of an absolute path: no "//", "/./", "..", trailing "/".
  static std::string normalise(std::string_view path);

 private:
  TreeNode& insert(const std::string& path, NodeKind kind);
  std::map<std::string, TreeNode, std::less<>> nodes_;
};

}  // namespace kerncap::softgpu
