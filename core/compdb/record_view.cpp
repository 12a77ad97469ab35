#include "core/compdb/record_view.h"

#include <zstd.h>

#include "core/compdb/record_layout.h"

namespace kerncap::compdb {

// Decoder's interface (coder.h) over a view's members.
struct RecordSkimmer::Cursor {
  const unsigned char* at;
  const unsigned char* end;
  std::size_t strings = 0;
  bool good = true;

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
      const unsigned char byte = *at++;
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return fail();
  }
  std::uint64_t fail() {
    good = false;
    at = end;
    return 0;
  }

  void integer(Skipped&) { number(); }
  template <typename Integer>
  void integer(Integer& value) {
    value = static_cast<Integer>(number());
  }
  void text(Skipped&) { number(); }
  void text(Text& value) {
    const std::uint64_t id = number();
    if (id >= strings) fail();
    value = static_cast<Text>(id);
  }
  void repeated(Skipped&) { number(); }
  template <typename Item, typename Each>
  void list(std::vector<Item>& items, Each each) {
    const std::uint64_t count = size();
    items.clear();
    items.reserve(count);
    for (std::uint64_t i = 0; i < count && good; ++i) each(*this, items.emplace_back());
  }
  template <typename Item, typename Each>
  void list(SkippedList<Item>&, Each each) {
    Item skipped;
    const std::uint64_t count = size();
    for (std::uint64_t i = 0; i < count && good; ++i) each(*this, skipped);
  }
  std::uint64_t size() {
    const std::uint64_t count = number();
    return count <= static_cast<std::uint64_t>(end - at) ? count : fail();  // an item takes at least a byte
  }
};

RecordSkimmer::RecordSkimmer() : context_(ZSTD_createDCtx()) {}
RecordSkimmer::~RecordSkimmer() { ZSTD_freeDCtx(context_); }

bool RecordSkimmer::unpack(const Frame& frame, std::string_view& payload) {
  payload = frame.stored;
  if (frame.raw_size == 0) return true;
  // As frame_payload() has it: the size is believed as far as zstd's own header agrees.
  if (context_ == nullptr || frame.raw_size > largest_raw_size ||
      ZSTD_getFrameContentSize(frame.stored.data(), frame.stored.size()) != frame.raw_size) {
    return false;
  }
  if (capacity_ < frame.raw_size) {
    capacity_ = frame.raw_size + frame.raw_size / 2;
    buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  const std::size_t size =
      ZSTD_decompressDCtx(context_, buffer_.get(), capacity_, frame.stored.data(), frame.stored.size());
  payload = {buffer_.get(), frame.raw_size};
  return ZSTD_isError(size) == 0U && size == frame.raw_size;
}

bool RecordSkimmer::read(const Frame& frame) {
  std::string_view payload;
  if (frame.type != static_cast<std::uint16_t>(FrameType::record) || frame.version != frame_version ||
      !unpack(frame, payload)) {
    return false;
  }
  const auto* start = static_cast<const unsigned char*>(static_cast<const void*>(payload.data()));
  Cursor cursor{start, start + payload.size()};
  const std::uint64_t count = cursor.size();
  lengths_.clear();
  strings_.clear();
  for (std::uint64_t i = 0; i < count && cursor.good; ++i) lengths_.push_back(cursor.number());
  for (const std::uint64_t length : lengths_) {
    if (!cursor.good || length > static_cast<std::uint64_t>(cursor.end - cursor.at)) return false;
    strings_.emplace_back(static_cast<const char*>(static_cast<const void*>(cursor.at)), length);
    cursor.at += length;
  }
  cursor.strings = strings_.size();
  describe_record(cursor, record_);
  return cursor.good && cursor.at == cursor.end &&
         (record_.kind == RecordKind::translation_unit || record_.kind == RecordKind::link) &&
         record_.origin >= Origin::recorded && record_.origin <= Origin::cmake_file_api;
}

}  // namespace kerncap::compdb
