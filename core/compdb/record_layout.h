// The one description of a record's layout, walked by the encoder (const Record), the decoder (Record) and the skimmer
// of the index (RecordView, which has the same names but skips what it does not keep).
#pragma once

namespace kerncap::compdb {

inline constexpr auto each_text = [](auto& coder, auto& value) { coder.text(value); };

template <typename Coder, typename AnyRecord>
void describe_record(Coder& coder, AnyRecord& record) {
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
  coder.integer(record.linked);
  coder.integer(record.rdc);
  coder.integer(record.new_driver);
  coder.integer(record.compressed);
  coder.integer(record.lto);
  coder.integer(record.configure_check);
  coder.integer(record.cached);
  coder.integer(record.replayable);
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

}  // namespace kerncap::compdb
