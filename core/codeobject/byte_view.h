// Bounds-checked reads of little-endian fields out of untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/support/error.h"

namespace kerncap::codeobject {

class ByteView {
 public:
  ByteView(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  std::uint64_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view name() const { return name_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

  bool contains(std::uint64_t offset, std::uint64_t length) const {
    return offset <= bytes_.size() && length <= bytes_.size() - offset;
  }

  template <typename T>
  T read(std::uint64_t offset, std::string_view what) const {
    static_assert(std::is_trivially_copyable_v<T>);
    require(offset, sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::span<const std::byte> slice(std::uint64_t offset, std::uint64_t length, std::string_view what) const {
    require(offset, length, what);
    return bytes_.subspan(offset, length);
  }

  bool starts_with(std::string_view magic, std::uint64_t offset = 0) const {
    return contains(offset, magic.size()) && text().substr(offset, magic.size()) == magic;
  }

 private:
  void require(std::uint64_t offset, std::uint64_t length, std::string_view what) const {
    if (!contains(offset, length))
      support::fail(support::ExitCode::bad_input, "{}: {} at offset {} with {} bytes lies outside its {} bytes", name_,
                    what, offset, length, bytes_.size());
  }

  std::span<const std::byte> bytes_;
  std::string_view name_;
};

}  // namespace kerncap::codeobject
