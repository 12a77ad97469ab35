// The encoding behind records: a table of interned strings, then variable-length integers.
//
// Encoder and Decoder have the same member functions, so that one description of a type serves both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kerncap::compdb {

class Encoder {
 public:
  void number(std::uint64_t value) { append(body_, value); }
  template <typename Integer>
  void integer(const Integer& value) {
    number(static_cast<std::uint64_t>(value));
  }
  // Integers that repeat within a record (times of headers from one package) cost their 8 bytes once.
  void repeated(const std::uint64_t& value) { text(std::string(reinterpret_cast<const char*>(&value), sizeof value)); }
  void text(const std::string& value) {
    auto [position, fresh] = ids_.try_emplace(value, ids_.size());
    if (fresh) {
      append(lengths_, value.size());
      bytes_ += value;
    }
    number(position->second);
  }
  template <typename Item, typename Each>
  void list(const std::vector<Item>& items, Each each) {
    number(items.size());
    for (const Item& item : items) each(*this, item);
  }
  bool good() const { return true; }

  std::string finish() const {
    std::string all;
    append(all, ids_.size());
    all += lengths_;
    all += bytes_;
    all += body_;
    return all;
  }

 private:
  static void append(std::string& to, std::uint64_t value) {
    while (value >= 0x80) {
      to.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    to.push_back(static_cast<char>(value));
  }
  std::unordered_map<std::string, std::uint64_t> ids_;
  std::string lengths_, bytes_, body_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view input) : rest_(input) {
    const std::uint64_t count = number();
    if (count > rest_.size()) {
      fail("the string table is larger than the record");
      return;
    }
    std::vector<std::uint64_t> lengths;
    lengths.reserve(count);
    for (std::uint64_t i = 0; i < count && good_; ++i) lengths.push_back(number());
    strings_.reserve(count);
    for (std::uint64_t length : lengths) {
      if (!good_ || length > rest_.size()) {
        fail("a string ends beyond the record");
        return;
      }
      strings_.push_back(rest_.substr(0, length));
      rest_.remove_prefix(length);
    }
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return fail("a number ends beyond the record"), 0;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return fail("a number is too long"), 0;
  }
  template <typename Integer>
  void integer(Integer& value) {
    value = static_cast<Integer>(number());
  }
  void repeated(std::uint64_t& value) {
    std::string bytes;
    text(bytes);
    if (bytes.size() != sizeof value) return fail("an interned number has the wrong size");
    bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  }
  void text(std::string& value) {
    const std::uint64_t id = number();
    if (!good_ || id >= strings_.size()) return fail("a string number is out of range");
    value.assign(strings_[id]);
  }
  template <typename Item, typename Each>
  void list(std::vector<Item>& items, Each each) {
    const std::uint64_t count = number();
    // Every item takes at least one byte, so a hostile count cannot make us allocate more than the input's size.
    if (!good_ || count > rest_.size()) return fail("a list is longer than the record");
    items.clear();
    items.reserve(count);
    for (std::uint64_t i = 0; i < count && good_; ++i) each(*this, items.emplace_back());
  }
  void fail(const char* why) {
    if (good_) error_ = why;
    good_ = false;
    rest_ = {};
  }
  bool good() const { return good_; }
  const std::string& error() const { return error_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  std::vector<std::string_view> strings_;
  bool good_ = true;
  std::string error_;
};

}  // namespace kerncap::compdb
