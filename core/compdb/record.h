// What the compilation database knows of one compiler call: plain data.
//
// Strings are bytes as the operating system gave them (paths and arguments need not be UTF-8). Times are nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kerncap::compdb {

enum class RecordKind : std::uint8_t { translation_unit = 1, link = 2 };

// How far a record can be trusted.
enum class Origin : std::uint8_t {
  recorded = 1,          // written by the wrapper during the build: exact
  compile_commands = 2,  // imported; sub-jobs recovered by a dry run
  ninja = 3,
  cmake_file_api = 4,  // intent, not the command
};

struct Job {  // one sub-command of the driver, as it was run
  enum class Tool : std::uint8_t { cc1 = 1, assembler, linker, bundler, other } tool = Tool::other;
  std::vector<std::string> argv;  // argv[0] is the program's absolute path as the driver spelled it
  std::string target;             // device processor with features ("gfx90a:xnack+"), "host", or empty when not known
  std::string output;             // its -o, as spelled
};

struct SourceFile {
  std::string spelling;               // as the compiler opened it (relative to the record's directory, or absolute)
  std::string path;                   // absolute and resolved (realpath); where the bytes were read
  std::uint64_t size = 0, mtime = 0;  // as they were right after the compile; bytes, nanoseconds
  std::string digest;                 // SHA-256, only when archived (blobs/<digest>); else empty
  std::uint64_t hash = 0;             // XXH3-64 of the content; 0 when not hashed (system headers)
  // Of the toolchain or the operating system, not of the application: found in a folder that the driver added itself,
  // or with -isystem below /usr or /opt.
  bool system = false;
};

struct Pass {                        // one front-end run of the translation unit
  std::string target;                // "host" or a device target, as in Job
  std::vector<std::uint32_t> files;  // indices into Record::files: main file first, then every header in order
};

struct Compiler {
  std::string path;                   // what was executed, absolute
  std::string resolved;               // after symlinks
  std::uint64_t size = 0, mtime = 0;  // identity of the resolved file
  std::string family;                 // "clang", "hipcc", "gcc", "nvcc", "unknown"
};

struct Record {
  RecordKind kind = RecordKind::translation_unit;
  Origin origin = Origin::recorded;
  std::string host;                     // machine that ran the compile
  std::string database;                 // the folder it was recorded in, then: finds the outputs of a moved build tree
  std::uint64_t started = 0, wall = 0;  // ns since the epoch; ns
  std::string directory;                // effective working directory, absolute
  std::vector<std::string> argv;        // as called (the compiler as argv[0]), response files kept by name
  std::vector<std::string> expanded_argv;  // with response files inlined; equal to argv when there were none
  std::vector<std::pair<std::string, std::string>> environment;  // only the variables that steer compilers
  Compiler compiler;
  std::string language;  // "c", "c++", "hip", "cuda", "assembler", ...
  std::string source;    // main source file as spelled; "-" for standard input
  std::string output;    // absolute path of the object (or linked file)
  // Identity of the output right after the compile; 0 when it is missing. The hash is XXH3-64 of an object's bytes; 0
  // for links and for objects above 64 MiB.
  std::uint64_t output_size = 0, output_mtime = 0, output_hash = 0;
  bool linked = false;  // compiled and linked by one command: `output` is the linked file
  // Absolute. Of a link: objects and libraries. Of a unit: what other compiles made for it (precompiled headers,
  // compiled modules or folders of them, the index of a distributed ThinLTO step, profiles).
  std::vector<std::string> inputs;
  std::vector<std::string> device_targets;  // resolved offload architectures
  bool rdc = false, new_driver = false, compressed = false, lto = false;
  bool configure_check = false;  // compiled by CMake while it probed the compiler
  bool cached = false;           // a compiler cache answered: the driver ran no jobs
  std::vector<Job> jobs;
  std::vector<SourceFile> files;
  std::vector<Pass> passes;
  int exit_status = 0;  // 0 good; otherwise as a shell says it (128 + signal)
  bool replayable = true;
  std::string not_replayable_reason;
};

}  // namespace kerncap::compdb
