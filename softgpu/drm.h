// DRM nodes: /dev/dri/renderD128 and its like.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "softgpu/driver.h"

namespace kerncap::softgpu {

// One open file: handles belong to it, and so do the mappings made through it.
class DrmFile {
 public:
  DrmFile(Driver& driver, Device& device, unsigned minor) : driver_(driver), device_(device), minor_(minor) {}
  ~DrmFile();

  // 0 or a negative errno. `request` is the whole ioctl number.
  int call(unsigned long request, void* arguments);

 private:
  int version(void* arguments);
  int get_cap(void* arguments);
  int gem_close(void* arguments);
  int prime_to_handle(void* arguments);
  int prime_from_handle(void* arguments);
  int amdgpu_info(void* arguments);
  int amdgpu_gem_create(void* arguments);
  int amdgpu_gem_mmap(void* arguments);
  int amdgpu_gem_va(void* arguments);
  int amdgpu_gem_metadata(void* arguments);

  using Handler = int (DrmFile::*)(void* arguments);
  struct Call {
    unsigned number;
    const char* name;
    Handler handler;
  };
  static const Call calls[];

  std::shared_ptr<Buffer> buffer_of(std::uint32_t handle);
  std::uint32_t add(std::shared_ptr<Buffer> buffer);

  struct Mapping {
    std::uint64_t size = 0;
    std::shared_ptr<Buffer> buffer;
  };

  Driver& driver_;
  Device& device_;
  unsigned minor_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<Buffer>> handles_;
  std::map<std::uint64_t, Mapping> mappings_;  // by GPU address
  std::uint32_t next_handle_ = 1;
};

}  // namespace kerncap::softgpu
