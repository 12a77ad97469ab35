#include "core/compdb/codec.h"

#include <unordered_map>

namespace kerncap::compdb {
namespace {

class Encoder {
 public:
  static constexpr bool decoding = false;

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
  static constexpr bool decoding = true;

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

// The one description of a record's layout, walked by the encoder (const record) and the decoder.
constexpr auto each_text = [](auto& coder, auto& value) { coder.text(value); };

template <typename Coder, typename AnyRecord>
void describe(Coder& coder, AnyRecord& record) {
  coder.integer(record.kind);
  coder.integer(record.origin);
  coder.text(record.host);
  coder.text(record.database);
  coder.integer(record.started);
  coder.integer(record.wall);
  coder.text(record.directory);
  coder.list(record.argv, each_text);
  coder.list(record.expanded_argv, each_text);
  coder.list(record.environment, [](auto& c, auto& variable) {
    c.text(variable.first);
    c.text(variable.second);
  });
  coder.text(record.compiler.path);
  coder.text(record.compiler.resolved);
  coder.integer(record.compiler.size);
  coder.integer(record.compiler.mtime);
  coder.text(record.compiler.family);
  coder.text(record.language);
  coder.text(record.source);
  coder.text(record.output);
  coder.integer(record.output_size);
  coder.integer(record.output_mtime);
  coder.integer(record.output_hash);
  coder.list(record.inputs, each_text);
  coder.list(record.device_targets, each_text);
  for (auto flag : {&Record::linked, &Record::rdc, &Record::new_driver, &Record::compressed, &Record::lto,
                    &Record::configure_check, &Record::cached, &Record::replayable}) {
    coder.integer(record.*flag);
  }
  coder.list(record.jobs, [](auto& c, auto& job) {
    c.integer(job.tool);
    c.text(job.target);
    c.text(job.output);
    c.list(job.argv, each_text);
  });
  coder.list(record.files, [](auto& c, auto& file) {
    c.text(file.spelling);
    c.text(file.path);
    c.integer(file.size);
    c.repeated(file.mtime);
    c.text(file.digest);
    c.integer(file.hash);
    c.integer(file.system);
  });
  coder.list(record.passes, [](auto& c, auto& pass) {
    c.text(pass.target);
    c.list(pass.files, [](auto& d, auto& file) { d.integer(file); });
  });
  coder.integer(record.exit_status);
  coder.text(record.not_replayable_reason);
}

// What the types alone don't promise.
const char* inconsistency(const Record& record) {
  if (record.kind != RecordKind::translation_unit && record.kind != RecordKind::link) return "unknown kind of record";
  if (record.origin < Origin::recorded || record.origin > Origin::cmake_file_api) return "unknown origin";
  for (const Job& job : record.jobs) {
    if (job.tool < Job::Tool::cc1 || job.tool > Job::Tool::other) return "unknown tool of a job";
    if (job.argv.empty()) return "a job without a command";
  }
  for (const Pass& pass : record.passes) {
    for (std::uint32_t file : pass.files) {
      if (file >= record.files.size()) return "a pass names a file that is not listed";
    }
  }
  return nullptr;
}

}  // namespace

std::string encode_record(const Record& record) {
  Encoder encoder;
  describe(encoder, record);
  return encoder.finish();
}

bool decode_record(std::string_view bytes, Record& record, std::string* error) {
  Decoder decoder(bytes);
  if (decoder.good()) describe(decoder, record);
  if (decoder.good() && !decoder.at_end()) decoder.fail("bytes follow the record");
  if (!decoder.good()) {
    if (error != nullptr) *error = decoder.error();
    return false;
  }
  if (const char* why = inconsistency(record)) {
    if (error != nullptr) *error = why;
    return false;
  }
  return true;
}

}  // namespace kerncap::compdb
