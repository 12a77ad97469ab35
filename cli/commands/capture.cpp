// kerncap capture: take a snapshot of a dispatch.
#include "cli/captured_run.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/snapshot/reader.h"
#include "core/support/json.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

using support::dump_json;
using support::ExitCode;
using support::Json;

Json summary(const CaptureOutcome& outcome, const snapshot::Reader& reader) {
  Json dispatches = Json::array();
  for (const snapshot::Dispatch& dispatch : reader.manifest().dispatches) {
    std::uint64_t bytes = 0;
    for (const snapshot::Region& region : dispatch.regions) bytes += region.size;
    dispatches.push_back({{"kernel", dispatch.kernel_demangled},
                          {"symbol", dispatch.kernel_symbol},
                          {"dispatch", dispatch.kernel_index},
                          {"regions", dispatch.regions.size()},
                          {"bytes", bytes},
                          {"scope", to_string(dispatch.scope)},
                          {"visible_bytes", dispatch.visible_bytes},
                          {"not_captured", dispatch.not_captured.size()},
                          {"has_after", dispatch.has_after}});
  }
  return {{"snapshot", outcome.snapshot.string()},
          {"dispatches", dispatches},
          {"stored_bytes", outcome.status.stored_bytes},
          {"held_ns", outcome.status.held_ns},
          {"notes", outcome.status.notes},
          {"application_exit_status", outcome.application.exit_status}};
}

ExitCode capture_command(const Program& program, const CaptureOptions& options) {
  const CaptureOutcome outcome = take_snapshot(program, "capture", options, options.output, options.force);
  const snapshot::Reader reader(outcome.snapshot);
  const Json result = summary(outcome, reader);
  if (program.json) {
    print(dump_json(result));
  } else {
    for (const Json& dispatch : result["dispatches"]) {
      print(fmt::format("captured {}, dispatch {}: {} regions, {}{}{}\n", dispatch["kernel"].get<std::string>(),
                        dispatch["dispatch"].get<std::uint64_t>(), dispatch["regions"].get<std::uint64_t>(),
                        support::human_bytes(dispatch["bytes"].get<std::uint64_t>()),
                        dispatch["scope"] == "everything"
                            ? ""
                            : fmt::format(" of the {} that the device could reach",
                                          support::human_bytes(dispatch["visible_bytes"].get<std::uint64_t>())),
                        dispatch["not_captured"] == 0 ? "" : "; parts of memory are NOT in it, see 'kerncap inspect'"));
    }
    print(
        fmt::format("{} ({} stored)\n", outcome.snapshot.string(), support::human_bytes(outcome.status.stored_bytes)));
    for (const std::string& note : outcome.status.notes) print("note: " + note + "\n");
  }
  if (!outcome.application.succeeded()) {
    support::fail(ExitCode::application_failed, "the snapshot is whole, but the application then ended with {}",
                  describe_end(outcome.application));
  }
  return ExitCode::done;
}

}  // namespace

void add_capture(Program& program) {
  CLI::App& command =
      program.add("capture", "Take a snapshot of a dispatch: all device memory before and after, launch, code",
                  "  kerncap capture -k my_kernel -o step.kcap -- ./app --steps 10\n"
                  "  kerncap capture -k 'gemm<*>' --dispatch 3 --softgpu -o gemm.kcap -- ./app\n");
  auto options = std::make_shared<CaptureOptions>();
  options->add_flags(command, "The snapshot's folder, usually NAME.kcap");
  program.run_with(command, [&program, options] { return capture_command(program, *options); });
}

}  // namespace kerncap::cli
