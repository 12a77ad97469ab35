// kerncap profile: which kernels run, ranked by device time.
#include <algorithm>

#include "cli/captured_run.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/support/json.h"

namespace kerncap::cli {
namespace {

using capture::KernelStatus;
using support::dump_json;
using support::ExitCode;
using support::Json;

struct Row {
  KernelStatus kernel;
  std::uint64_t process = 0;
};

std::string shape_of(const KernelStatus& kernel) {
  if (kernel.shapes.empty()) return "-";
  const KernelStatus::Shape& shape = kernel.shapes.front();
  std::string text = fmt::format("{}x{}x{}/{}x{}x{}", shape.grid[0], shape.grid[1], shape.grid[2], shape.workgroup[0],
                                 shape.workgroup[1], shape.workgroup[2]);
  if (kernel.shapes.size() > 1) text += fmt::format(" +{}", kernel.shapes.size() - 1);
  return text;
}

Json as_json(const Row& row, std::uint64_t all_ns) {
  const KernelStatus& kernel = row.kernel;
  Json shapes = Json::array(), times = Json::array();
  for (const KernelStatus::Shape& shape : kernel.shapes) {
    shapes.push_back({{"grid", shape.grid}, {"workgroup", shape.workgroup}, {"dispatches", shape.dispatches}});
  }
  for (const KernelStatus::Timed& timed : kernel.dispatch_times) {
    times.push_back({{"dispatch", timed.kernel_index}, {"index", timed.index}, {"ns", timed.nanoseconds}});
  }
  return {{"kernel", kernel.demangled},
          {"symbol", kernel.symbol},
          {"process", row.process},
          {"calls", kernel.dispatches},
          {"timed", kernel.timed},
          {"total_ns", kernel.total_ns},
          {"mean_ns", kernel.timed == 0 ? 0 : kernel.total_ns / kernel.timed},
          {"minimum_ns", kernel.minimum_ns},
          {"maximum_ns", kernel.maximum_ns},
          {"slowest_dispatch", kernel.slowest},
          {"share", all_ns == 0 ? 0.0 : static_cast<double>(kernel.total_ns) / static_cast<double>(all_ns)},
          {"shapes", shapes},
          {"vgprs", kernel.vgprs},
          {"agprs", kernel.agprs},
          {"sgprs", kernel.sgprs},
          {"lds_bytes", kernel.group_segment_size},
          {"scratch_bytes", kernel.private_segment_size},
          {"code_object", kernel.code_object},
          {"dispatch_times", times}};
}

ExitCode profile(const Program& program, const Devices& devices, const std::string& process) {
  capture::Config config;
  config.mode = capture::Mode::profile;
  config.process = process;
  const CapturedRun run = run_captured(program, config, program.required_application("profile"),
                                       device_environment(devices, program.settings, {"gfx90a"}));
  std::vector<Row> rows;
  std::uint64_t all_ns = 0;
  for (const capture::Status& status : run.statuses) {
    for (const KernelStatus& kernel : status.kernels) {
      if (kernel.dispatches == 0) continue;
      rows.push_back({kernel, status.process});
      all_ns += kernel.total_ns;
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.kernel.total_ns > b.kernel.total_ns; });
  if (program.json) {
    Json kernels = Json::array();
    for (const Row& row : rows) kernels.push_back(as_json(row, all_ns));
    print(dump_json(
        Json{{"application_exit_status", run.application.exit_status}, {"total_ns", all_ns}, {"kernels", kernels}}));
  } else if (!rows.empty()) {
    Table table({{"share", Align::right},
                 {"total", Align::right},
                 {"mean", Align::right},
                 {"calls", Align::right},
                 {"grid/workgroup"},
                 {"VGPR+AGPR/SGPR", Align::right},
                 {"LDS", Align::right},
                 {"scratch", Align::right},
                 {"code object"},
                 {"kernel"}});
    for (const Row& row : rows) {
      const KernelStatus& kernel = row.kernel;
      const double share = all_ns == 0 ? 0 : 100 * static_cast<double>(kernel.total_ns) / static_cast<double>(all_ns);
      table.add(
          {fmt::format("{:.1f} %", share), human_time(static_cast<double>(kernel.total_ns)),
           kernel.timed == 0 ? "-"
                             : human_time(static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.timed)),
           std::to_string(kernel.dispatches), shape_of(kernel),
           fmt::format("{}+{}/{}", kernel.vgprs, kernel.agprs, kernel.sgprs), std::to_string(kernel.group_segment_size),
           std::to_string(kernel.private_segment_size), kernel.code_object.substr(0, 12), kernel.demangled});
    }
    print("\n" + table.text());
  }
  if (!run.application.succeeded()) {
    support::fail(ExitCode::application_failed, "the application ended with {}", describe_end(run.application));
  }
  if (run.statuses.empty()) {
    support::fail(
        ExitCode::environment,
        "the application loaded no HSA runtime, so there is nothing to profile; 'kerncap doctor' looks for reasons");
  }
  if (rows.empty()) support::fail(ExitCode::answer_is_no, "the application launched no kernel");
  return ExitCode::done;
}

}  // namespace

void add_profile(Program& program) {
  CLI::App& command =
      program.add("profile", "Rank the kernels of an application by device time",
                  "  kerncap profile -- ./app --steps 10\n  kerncap profile --softgpu --json -- ./app\n"
                  "The number that 'kerncap capture --dispatch' takes is \"dispatch\" in --json's dispatch_times;\n"
                  "'kerncap capture --dispatch slowest --profile FILE' takes what --json wrote into FILE.\n");
  struct Options {
    Devices devices;
    std::string process;
  };
  auto options = std::make_shared<Options>();
  options->devices.add_flag(command);
  command.add_option("--process", options->process, "Only processes whose program matches this glob")
      ->type_name("GLOB");
  program.run_with(command, [&program, options] { return profile(program, options->devices, options->process); });
}

}  // namespace kerncap::cli
