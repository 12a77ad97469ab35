// What the fuzzer of the compilation database calls, and what the unit tests replay: every reader of bytes that
// somebody else wrote. The first byte chooses the reader.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/compdb/arguments.h"
#include "core/compdb/assemble.h"
#include "core/compdb/codec.h"
#include "core/compdb/depfile.h"
#include "core/compdb/driver_log.h"
#include "core/compdb/frame.h"
#include "core/compdb/import.h"
#include "core/compdb/index_file.h"
#include "core/compdb/log_reader.h"
#include "core/compdb/record_view.h"
#include "core/compdb/response_file.h"
#include "core/support/error.h"

namespace kerncap::compdb {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// What the index reads in place must be what the record says.
inline void skim(const Frame& frame) {
  Record record;
  RecordSkimmer skimmer;
  if (!read_record(frame, record, nullptr)) {
    skimmer.read(frame);
    return;
  }
  require(skimmer.read(frame));
  const RecordView& view = skimmer.record();
  require(skimmer.text(view.output) == record.output && skimmer.text(view.source) == record.source);
  require(view.exit_status == record.exit_status && view.files.size() == record.files.size());
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    require(skimmer.text(view.files[i].path) == record.files[i].path);
    require(skimmer.text(view.files[i].spelling) == record.files[i].spelling);
  }
}

inline void fuzz_log(std::string_view bytes) {
  std::uint64_t last = 0;
  const ScanResult scan = scan_frames(bytes, 0, [&](const Frame& frame) {
    require(frame.offset >= last && frame.offset + frame.size <= bytes.size());
    last = frame.offset + frame.size;
    skim(frame);
  });
  require(scan.end <= bytes.size());
}

// What decodes must encode to something that decodes to the same.
inline void fuzz_record(std::string_view bytes) {
  Record record, again;
  Frame frame;
  const std::string framed = make_frame(FrameType::record, bytes);
  require(frame_at(framed, 0, frame));
  skim(frame);
  if (!decode_record(bytes, record, nullptr)) return;
  const std::string canonical = encode_record(record);
  require(decode_record(canonical, again, nullptr) && encode_record(again) == canonical);
}

inline void fuzz_arguments(std::string_view bytes) {
  std::vector<std::string> argv = lines_of(bytes);
  for (const char* family : {"clang", "hipcc", "gcc", "nvcc", "unknown"}) {
    const CommandLine line = parse_arguments(argv, family);
    require(line.sources.size() + line.link_inputs.size() <= argv.size());
  }
}

inline void fuzz_driver_log(std::string_view bytes) {
  FinishedCall call;
  call.common.directory = "/nonexistent";
  call.common.exit_status = 1;  // nothing is looked up on the disk
  call.common.expanded_argv = {"clang", "a.c"};
  call.line = parse_arguments(call.common.expanded_argv, "clang");
  call.jobs = parse_driver_log(bytes);
  for (LoggedJob& job : call.jobs) remove_logging_options(job.argv, "/tmp/log");
  for (const Record& record : assemble_records(call)) fuzz_record(encode_record(record));
  bool failed = false;
  parse_dry_run(bytes, &failed);
}

inline void fuzz_depfile(std::string_view bytes) {
  const Dependencies read = parse_depfile(bytes);
  std::size_t total = 0;
  for (const std::string& file : read.files) total += file.size();
  require(total <= bytes.size());
}

inline void fuzz_words(std::string_view bytes) {
  split_response_text(bytes);
  std::vector<std::string> words;
  split_shell_words(bytes, words);
  read_ninja_deps(bytes);
}

inline void fuzz_compile_commands(std::string_view bytes) {
  try {
    ImportReport report;
    read_compile_commands(bytes, "fuzz", Origin::compile_commands, report);
  } catch (const support::Error&) {
  }
}

inline void fuzz_index(std::string_view bytes) {
  const auto index = IndexFile::from_bytes(std::string(bytes));
  if (!index) return;
  for (const IndexedHeader& header : index->headers()) {
    for (std::uint32_t unit : index->units_of_header(header.hash)) require(unit < index->units().size());
  }
  for (const IndexedKey& key : index->keys()) index->find(key.hash);
  for (const IndexedDigest& code_object : index->code_objects()) index->kernels_of(code_object);
  for (const TextReference& root : index->roots()) index->text(root);
}

inline void fuzz_compdb(std::string_view bytes) {
  using Target = void (*)(std::string_view);
  constexpr Target targets[] = {fuzz_log,     fuzz_record, fuzz_arguments,        fuzz_driver_log,
                                fuzz_depfile, fuzz_words,  fuzz_compile_commands, fuzz_index};
  if (bytes.empty()) return;
  targets[static_cast<unsigned char>(bytes[0]) % std::size(targets)](bytes.substr(1));
}

// Good input for each reader, with the byte that chooses it: where a fuzzer starts, and what the replay damages.
inline std::vector<std::string> fuzz_seeds() {
  Record record;
  record.argv = record.expanded_argv = {"clang", "-c", "a.c"};
  record.jobs = {{.tool = Job::Tool::cc1, .argv = {"clang", "-cc1"}, .target = "host", .output = "a.o"}};
  record.files.resize(2);
  record.passes = {{.target = "host", .files = {0, 1}}};
  IndexContent index;
  index.units.resize(2);
  for (IndexedUnit& unit : index.units) unit.record.size = 1;
  index.keys = {{1, 0, no_code_object}, {2, 1, no_code_object}};
  index.postings = std::string("\0\1", 2);
  index.headers = {{.hash = 7, .first = 0, .size = 2}};
  index.roots = {index.add_text("/b/.kerncap")};
  const std::string frame = make_frame(FrameType::record, encode_record(record));
  return {std::string("\0", 1) + frame + frame,
          "\1" + encode_record(record),
          "\2clang\n-Xclang\n-c\n-o\nx.o\na.hip\n--offload-arch=gfx90a,gfx1030\n-Wp,-MMD,d\n-x\nhip\n-",
          "\3[Logging clang options]\n (in-process)\n \"clang\" \"-cc1\" \"-triple\" \"amdgcn\" \"-target-cpu\" "
          "\"gfx90a\" \"-o\" \"/tmp/o\" \"-x\" "
          "\"hip\" \"a.hip\"\n/usr/include/a.h\n[Logging clang options]\n \"ld\" \"-o\" \"a.out\" \"/tmp/o\"\n",
          "\4out.o: a.c b\\ c.h \\\n d$$.h\n\nb\\ c.h:\n",
          "\5-DA=\"x y\" 'b' c\\ d\nout.o: #deps 1, deps mtime 1 (VALID)\n    a.c\n",
          "\6[{\"directory\":\"/b\",\"file\":\"a.c\",\"command\":\"cc -c "
          "a.c\"},{\"directory\":\"/b\",\"arguments\":[\"cc\"]}]",
          "\7" + IndexFile::serialise(index)};
}

}  // namespace kerncap::compdb
