#include "cli/emit_run.h"

#include "cli/companions.h"
#include "cli/table.h"
#include "core/support/progress.h"

namespace kerncap::cli {

emit::EmitReport run_emit(emit::EmitOptions options) {
  const Companions parts = companions();
  options.data_folder = require_companion(parts.data);
  options.helper_folder = parts.masquerade.parent_path();
  const support::Progress progress("emitting the project", 0, "steps");
  return emit::emit_project(options);
}

std::string describe(const emit::EmitReport& report) {
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<14} {}\n", label, value);
  };
  line("project", report.project.string());
  line("kernel", report.demangled);
  line("target", report.target);
  if (report.capture_only) line("source", "none: " + report.capture_only_reason);
  if (report.translation_unit) line("source", report.translation_unit->source);
  if (report.kernel) {
    line("definition",
         fmt::format("{}:{}-{}", report.kernel->file, report.kernel->first_line, report.kernel->last_line));
  }
  if (!report.files.empty()) line("bundled", fmt::format("{} source files", report.files.size()));
  for (const emit::TranslationUnit& other : report.other_candidates) line("also from", other.output);
  if (report.rebuild) {
    const double seconds = static_cast<double>(report.rebuild->wall) / 1e9;
    switch (report.rebuild->outcome) {
      case emit::RebuildOutcome::byte_identical:
        line("rebuild check", fmt::format("byte-identical ({:.1f} s)", seconds));
        break;
      case emit::RebuildOutcome::differs:
        line("rebuild check", "DIFFERS: " + report.rebuild->reason);
        break;
      case emit::RebuildOutcome::not_possible:
        line("rebuild check", "not possible: " + report.rebuild->reason);
        break;
    }
  }
  if (report.slice && report.slice->offered)
    line("slice",
         fmt::format("the same kernel in {:.1f} s, the whole translation unit in {:.1f} s; {} functions left out",
                     static_cast<double>(report.slice->sliced) / 1e9, static_cast<double>(report.slice->whole) / 1e9,
                     report.slice->emptied));
  else if (report.slice)
    line("slice", "none: " + report.slice->reason);
  for (const std::string& warning : report.warnings) line("warning", warning);
  return text;
}

void print_report(const Program& program, const emit::EmitReport& report) {
  print(program.json ? support::dump_json(to_json(report)) : describe(report));
}

support::ExitCode exit_code(const emit::EmitReport& report) {
  const bool differs = report.rebuild && report.rebuild->outcome == emit::RebuildOutcome::differs;
  return differs ? support::ExitCode::answer_is_no : support::ExitCode::done;
}

}  // namespace kerncap::cli
