#include "core/compdb/codec.h"

#include "core/compdb/coder.h"

namespace kerncap::compdb {
namespace {

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
