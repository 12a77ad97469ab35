// One recorded compile: what must be arranged before the compiler starts, and what is written when it has ended.
#pragma once

#include <string>
#include <vector>

#include "core/compdb/assemble.h"
#include "wrapper/compiler.h"
#include "wrapper/run.h"

namespace kerncap::wrapper {

class CallRecorder {
 public:
  explicit CallRecorder(const Target& target);
  ~CallRecorder();
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  // Does the call compile or link anything, and is there a database to note it in?
  bool wanted() const { return wanted_; }
  const std::string& database() const { return database_; }

  // Adds the variables that make clang's driver log its jobs and headers.
  void prepare(Changes& changes);
  // Reads the log, appends the records; says so (once per build) when they cannot be written.
  void finish(int exit_status);

 private:
  void read_log();
  void read_depfile();

  const Target& target_;
  std::string database_;
  bool wanted_ = false;
  compdb::FinishedCall call_;
  std::string log_path_;  // temporary; empty when there is none
  bool logs_headers_ = false;
};

}  // namespace kerncap::wrapper
