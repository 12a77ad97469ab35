#include "core/compdb/codec.h"

#include "core/compdb/coder.h"
#include "core/compdb/record_layout.h"

namespace kerncap::compdb {
namespace {

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
  describe_record(encoder, record);
  return encoder.finish();
}

bool decode_record(std::string_view bytes, Record& record, std::string* error) {
  Decoder decoder(bytes);
  if (decoder.good()) describe_record(decoder, record);
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
