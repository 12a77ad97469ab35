#include "emit/slice.h"

#include <algorithm>
#include <map>

#include "core/codeobject/same_kernel.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;

// Emptied functions leave parameters and helpers unused; nobody should have to read about it, or fail with -Werror.
constexpr const char* quiet_options[] = {
    "-Wno-unused-parameter", "-Wno-unused-function",    "-Wno-unused-variable",        "-Wno-unused-template",
    "-Wno-missing-noreturn", "-Wno-undefined-internal", "-Wno-unused-member-function", "-Wno-unused-private-field"};

// Files to write, with a way back.
class Changes {
 public:
  explicit Changes(fs::path project) : project_(std::move(project)) {}

  void change(const std::string& file, const std::string& text) {
    originals_.emplace(file, support::read_text_file(project_ / file));
    support::write_file_atomically(project_ / file, text, 0644);
  }
  void take_back() {
    for (const auto& [file, text] : originals_) support::write_file_atomically(project_ / file, text, 0644);
    originals_.clear();
  }
  const std::map<std::string, std::string>& originals() const { return originals_; }

 private:
  fs::path project_;
  std::map<std::string, std::string> originals_;
};

std::string edited(const std::string& text, const std::vector<SliceEdit>& edits) {
  std::string result;
  std::size_t at = 0;
  for (const auto& edit : edits) {
    if (edit.begin < at || edit.end < edit.begin || edit.end > text.size())
      support::fail(support::ExitCode::bad_input, "the kernel finder proposed an impossible edit of '{}'", edit.file);
    result += text.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
  }
  return result + text.substr(at);
}

// The one compiler step that makes a relocatable object, or nothing.
const Step* compile_step(const Rebuild& rebuild) {
  const auto& steps = rebuild.jobs.steps;
  if (steps.size() != 2 || !steps.front().front_end || steps.back().tool != compdb::Job::Tool::linker) return nullptr;
  return &steps.front();
}

void write_slice(Changes& changes, const fs::path& project, const Rebuild& rebuild, const SliceProposal& proposal,
                 const Step& step) {
  std::map<std::string, std::vector<SliceEdit>> edits;
  for (const auto& edit : proposal.edits) edits[edit.file].push_back(edit);
  if (!proposal.anchor.empty()) edits[rebuild.tree.main_file];
  for (const auto& [file, of_file] : edits) {
    if (std::none_of(rebuild.tree.files.begin(), rebuild.tree.files.end(),
                     [&](const TreeFile& known) { return known.project_path == file; }))
      support::fail(support::ExitCode::bad_input, "the kernel finder proposed an edit of '{}', which is not bundled",
                    file);
    std::string text = edited(support::read_text_file(project / file), of_file);
    if (file == rebuild.tree.main_file && !proposal.anchor.empty())
      text += std::string(text.ends_with('\n') ? "" : "\n") + proposal.anchor + "\n";
    changes.change(file, text);
  }
  std::string job = support::read_text_file(project / "jobs" / (step.name + ".args.in"));
  for (const char* option : quiet_options) job += response_file_line(option);
  changes.change("jobs/" + step.name + ".args.in", job);
}

std::string difference(const std::string& whole, const fs::path& sliced, const std::string& symbol) {
  const std::string text = support::read_text_file(sliced, std::uint64_t{1} << 32);
  const auto bytes = [](const std::string& content) {
    return std::as_bytes(std::span(content.data(), content.size()));
  };
  return codeobject::kernel_difference(bytes(whole), bytes(text), symbol);
}

}  // namespace

Slice slice_project(const fs::path& project, const Rebuild& rebuild, const SliceProposal& proposal,
                    RebuildFolder& build, const EmitReport& report) {
  Slice slice;
  const auto refuse = [&](std::string reason) {
    slice.reason = std::move(reason);
    return slice;
  };
  if (!proposal.problem.empty()) return refuse(proposal.problem);
  if (!report.rebuild || report.rebuild->outcome != RebuildOutcome::byte_identical)
    return refuse("the whole translation unit does not rebuild byte for byte, so nothing could prove a slice");
  const Step* step = compile_step(rebuild);
  if (step == nullptr) return refuse("the kernel is compiled together with other translation units or at link time");

  Changes changes(project);
  std::string problem;
  try {
    const std::string whole = support::read_text_file(build.path() / step->output, std::uint64_t{1} << 32);
    slice.whole = build.build_time();
    write_slice(changes, project, rebuild, proposal, *step);
    problem = build.build();
    slice.sliced = build.build_time();
    if (!problem.empty()) {
      problem = "without the other functions the translation unit does not compile: " + problem;
    } else if (problem = difference(whole, build.path() / step->output, report.symbol); !problem.empty()) {
      problem = "without the other functions the compiler makes another kernel: " + problem;
    } else if (slice.sliced >= slice.whole) {
      problem = "it takes the compiler no less than the whole translation unit";
    } else {
      slice.digest = support::sha256_hex_of_file(build.code_object());
      for (const auto& [file, text] : changes.originals()) {
        if (file.starts_with("jobs/")) continue;
        fs::create_directories((project / "whole" / file).parent_path());
        support::write_file_atomically(project / "whole" / file, text, 0644);
        slice.files.push_back(file);
      }
    }
  } catch (const support::Error& error) {
    problem = error.what();
  }
  slice.offered = problem.empty();
  if (slice.offered)
    slice.emptied = proposal.edits.size();
  else
    changes.take_back();
  slice.reason = problem;
  return slice;
}

}  // namespace kerncap::emit
