#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace kerncap::replay {

// A buffer that forgets: expected results must not lie around where a kernel might find them.
class WipedBuffer {
 public:
  explicit WipedBuffer(std::size_t size) : bytes_(size) {}
  ~WipedBuffer() { ::explicit_bzero(bytes_.data(), bytes_.size()); }
  WipedBuffer(const WipedBuffer&) = delete;
  WipedBuffer& operator=(const WipedBuffer&) = delete;
  std::span<std::byte> first(std::size_t size) { return std::span(bytes_).first(size); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace kerncap::replay
