// Replaced libc functions: listing folders. Ours exist in memory only, so their DIR objects are our own.
#include <dirent.h>
#include <fcntl.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "softgpu/descriptors.h"
#include "softgpu/interpose.h"
#include "softgpu/system_calls.h"

using namespace kerncap::softgpu;  // NOLINT: the functions below must be global

namespace {

struct Listing {
  struct Entry {
    std::string name;
    unsigned char type;
    unsigned long inode;
  };
  std::vector<Entry> entries;
  std::size_t position = 0;
  int fd = -1;
  dirent entry{};
};

// How many listings are open, so that everybody else's readdir() costs one load.
std::atomic<unsigned> open_listings{0};
struct Known {
  std::mutex mutex;
  std::set<const void*> listings;
};
Known& known() {
  static auto* const all = new Known;
  return *all;
}

Listing* listing_of(const void* folder) {
  if (open_listings.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(known().mutex);
  return known().listings.contains(folder) ? static_cast<Listing*>(const_cast<void*>(folder)) : nullptr;
}

unsigned char type_of(const TreeNode& node) {
  switch (node.kind) {
    case NodeKind::folder:
      return DT_DIR;
    case NodeKind::text:
      return DT_REG;
    case NodeKind::link:
      return DT_LNK;
    default:
      return DT_CHR;
  }
}

DIR* list(Driver& driver, const std::string& path, int fd) {
  std::string resolved;
  const TreeNode* node = driver.tree.find(path, &resolved);
  if (node == nullptr || node->kind != NodeKind::folder) {
    errno = node == nullptr ? ENOENT : ENOTDIR;
    return nullptr;
  }
  auto listing = std::make_unique<Listing>();
  listing->fd = fd;
  listing->entries = {{".", DT_DIR, node->inode}, {"..", DT_DIR, node->inode}};
  for (const std::string& name : node->children) {
    const TreeNode* child = driver.tree.find_link(resolved + "/" + name);
    if (child != nullptr) listing->entries.push_back({name, type_of(*child), child->inode});
  }
  const std::lock_guard lock(known().mutex);
  known().listings.insert(listing.get());
  ++open_listings;
  return reinterpret_cast<DIR*>(listing.release());
}

dirent* read(Listing& listing) {
  if (listing.position == listing.entries.size()) return nullptr;
  const auto& [name, type, inode] = listing.entries[listing.position++];
  listing.entry = {};
  listing.entry.d_ino = inode;
  listing.entry.d_off = static_cast<off_t>(listing.position);
  listing.entry.d_reclen = sizeof listing.entry;
  listing.entry.d_type = type;
  std::strncpy(listing.entry.d_name, name.c_str(), sizeof listing.entry.d_name - 1);
  return &listing.entry;
}

Next<DIR*(const char*)> next_opendir("opendir");
Next<DIR*(int)> next_fdopendir("fdopendir");
Next<dirent*(DIR*)> next_readdir("readdir");
Next<dirent64*(DIR*)> next_readdir64("readdir64");
Next<int(DIR*)> next_closedir("closedir");
Next<void(DIR*)> next_rewinddir("rewinddir");
Next<int(DIR*)> next_dirfd("dirfd");
Next<long(DIR*)> next_telldir("telldir");
Next<void(DIR*, long)> next_seekdir("seekdir");

}  // namespace

KERNCAP_EXPORT DIR* opendir(const char* path) {
  Driver* driver = owner_of(path);
  if (driver == nullptr) return next_opendir(path);
  return guarded(static_cast<DIR*>(nullptr), [&] { return list(*driver, path, -1); });
}

KERNCAP_EXPORT DIR* fdopendir(int fd) {
  return guarded(static_cast<DIR*>(nullptr), [&] {
    const auto file = file_of(fd);
    if (file == nullptr || file->kind != FileKind::folder) return next_fdopendir(fd);
    return list(*file->driver, file->path, fd);
  });
}

KERNCAP_EXPORT dirent* readdir(DIR* folder) {
  Listing* listing = listing_of(folder);
  return listing == nullptr ? next_readdir(folder) : read(*listing);
}

KERNCAP_EXPORT dirent64* readdir64(DIR* folder) {
  static_assert(sizeof(dirent) == sizeof(dirent64) && offsetof(dirent, d_name) == offsetof(dirent64, d_name));
  Listing* listing = listing_of(folder);
  return listing == nullptr ? next_readdir64(folder) : reinterpret_cast<dirent64*>(read(*listing));
}

KERNCAP_EXPORT int closedir(DIR* folder) {
  Listing* listing = listing_of(folder);
  if (listing == nullptr) return next_closedir(folder);
  {
    const std::lock_guard lock(known().mutex);
    known().listings.erase(folder);
    --open_listings;
  }
  if (listing->fd >= 0) {
    forget_descriptor(listing->fd);
    raw::close(listing->fd);
  }
  delete listing;
  return 0;
}

KERNCAP_EXPORT void rewinddir(DIR* folder) noexcept {
  Listing* listing = listing_of(folder);
  if (listing == nullptr) return next_rewinddir(folder);
  listing->position = 0;
}

KERNCAP_EXPORT int dirfd(DIR* folder) noexcept {
  const Listing* listing = listing_of(folder);
  if (listing == nullptr) return next_dirfd(folder);
  if (listing->fd < 0) errno = ENOTSUP;
  return listing->fd;
}

KERNCAP_EXPORT long telldir(DIR* folder) noexcept {
  const Listing* listing = listing_of(folder);
  return listing == nullptr ? next_telldir(folder) : static_cast<long>(listing->position);
}

KERNCAP_EXPORT void seekdir(DIR* folder, long position) noexcept {
  Listing* listing = listing_of(folder);
  if (listing == nullptr) return next_seekdir(folder, position);
  if (position >= 0 && static_cast<std::size_t>(position) <= listing->entries.size()) {
    listing->position = static_cast<std::size_t>(position);
  }
}
