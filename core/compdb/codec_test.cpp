#include "core/compdb/codec.h"

#include <gtest/gtest.h>

#include <random>

namespace kerncap::compdb {
namespace {

Record full_record() {
  Record record;
  record.kind = RecordKind::translation_unit;
  record.origin = Origin::ninja;
  record.host = "box";
  record.database = "/b/.kerncap";
  record.started = 1'700'000'000'123'456'789;
  record.wall = 42;
  record.directory = "/b";
  record.argv = {"hipcc", "@a.rsp", "-DX=\"new\nline\"", "\xff\xfe"};
  record.expanded_argv = {"hipcc", "-c", "a.hip"};
  record.environment = {{"CPATH", "/x"}, {"EMPTY", ""}};
  record.compiler = {
      .path = "/usr/bin/hipcc", .resolved = "/usr/bin/hipcc", .size = 1844, .mtime = 99, .family = "hipcc"};
  record.language = "hip";
  record.source = "a.hip";
  record.output = "/b/a.o";
  record.output_size = 10;
  record.output_mtime = 11;
  record.output_hash = ~std::uint64_t{0};
  record.linked = record.rdc = record.new_driver = record.compressed = record.lto = true;
  record.configure_check = record.cached = true;
  record.inputs = {"/b/x.o"};
  record.device_targets = {"gfx90a:xnack+"};
  record.jobs = {
      {.tool = Job::Tool::cc1, .argv = {"/usr/bin/clang", "-cc1"}, .target = "gfx90a:xnack+", .output = "/tmp/a.o"}};
  record.files = {
      {.spelling = "a.hip", .path = "/b/a.hip", .size = 5, .mtime = 7, .digest = "d", .hash = 8, .system = false},
      {.spelling = "/usr/include/h.h",
       .path = "/usr/include/h.h",
       .size = 6,
       .mtime = 7,
       .digest = {},
       .hash = 0,
       .system = true}};
  record.passes = {{.target = "host", .files = {0, 1}}};
  record.exit_status = 139;
  record.replayable = false;
  record.not_replayable_reason = "because";
  return record;
}

// Record has no ==, on purpose: nothing but this test compares whole records.
std::string fingerprint(const Record& record) { return encode_record(record); }

TEST(Codec, every_field_survives) {
  const Record record = full_record();
  Record read;
  std::string error;
  ASSERT_TRUE(decode_record(encode_record(record), read, &error)) << error;
  EXPECT_EQ(read.kind, record.kind);
  EXPECT_EQ(read.origin, record.origin);
  EXPECT_EQ(read.started, record.started);
  EXPECT_EQ(read.argv, record.argv);
  EXPECT_EQ(read.environment, record.environment);
  EXPECT_EQ(read.compiler.mtime, 99U);
  EXPECT_EQ(read.output_hash, ~std::uint64_t{0});
  EXPECT_EQ(read.exit_status, 139);
  EXPECT_TRUE(read.lto && read.cached && read.configure_check && !read.replayable);
  ASSERT_EQ(read.jobs.size(), 1U);
  EXPECT_EQ(read.jobs[0].argv, record.jobs[0].argv);
  EXPECT_EQ(read.files[0].mtime, 7U);
  EXPECT_TRUE(read.files[1].system);
  EXPECT_EQ(read.passes[0].files, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(fingerprint(read), fingerprint(record));
}

TEST(Codec, an_empty_record_survives) {
  Record read;
  ASSERT_TRUE(decode_record(encode_record(Record{}), read, nullptr));
  EXPECT_EQ(fingerprint(read), fingerprint(Record{}));
}

TEST(Codec, every_truncation_is_refused) {
  const std::string bytes = encode_record(full_record());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Record read;
    std::string error;
    EXPECT_FALSE(decode_record(std::string_view(bytes).substr(0, size), read, &error)) << size;
    EXPECT_FALSE(error.empty());
  }
}

TEST(Codec, trailing_bytes_are_refused) {
  Record read;
  EXPECT_FALSE(decode_record(encode_record(full_record()) + "x", read, nullptr));
}

TEST(Codec, a_pass_that_names_a_missing_file_is_refused) {
  Record record = full_record();
  record.passes[0].files = {2};
  Record read;
  std::string error;
  EXPECT_FALSE(decode_record(encode_record(record), read, &error));
  EXPECT_EQ(error, "a pass names a file that is not listed");
}

TEST(Codec, damaged_bytes_never_crash_and_never_allocate_beyond_the_input) {
  const std::string good = encode_record(full_record());
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    Record read;
    if (decode_record(bytes, read, nullptr)) {
      EXPECT_LE(read.argv.size(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace kerncap::compdb
