// kerncap pack, unpack: a project in one file, and back.
#include "emit/pack.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/support/json.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

using support::dump_json;
using support::ExitCode;
using support::Json;

struct Options {
  std::string input, output;
  bool force = false;
};

void add_flags(CLI::App& command, Options& options, const std::string& input, const std::string& output) {
  command.add_option("input", options.input, input)->required();
  command.add_option("-o,--output", options.output, output)->required();
  command.add_flag("-f,--force", options.force, "Replace an existing output, once the new one is whole");
}

ExitCode report(const Program& program, const Options& options, const emit::PackReport& result) {
  if (program.json) {
    print(dump_json(Json{{"output", options.output},
                         {"files", result.files},
                         {"bytes", result.bytes},
                         {"packed_bytes", result.packed_bytes}}));
  } else {
    print(fmt::format("{}: {} files, {} ({} packed)\n", options.output, result.files,
                      support::human_bytes(result.bytes), support::human_bytes(result.packed_bytes)));
  }
  return ExitCode::done;
}

}  // namespace

void add_pack(Program& program) {
  CLI::App& packing =
      program.add("pack", "Put a project into one file, to send or to keep", "  kerncap pack repro -o repro.kcpack\n");
  auto options = std::make_shared<Options>();
  add_flags(packing, *options, "The project's folder", "The file");
  program.run_with(packing, [&program, options] {
    return report(program, *options, emit::pack_project(options->input, options->output, options->force));
  });

  CLI::App& unpacking = program.add("unpack", "Restore a packed project, and prove that nothing was lost or changed",
                                    "  kerncap unpack repro.kcpack -o repro\n");
  auto back = std::make_shared<Options>();
  add_flags(unpacking, *back, "The packed file", "The project's folder");
  program.run_with(unpacking, [&program, back] {
    return report(program, *back, emit::unpack_project(back->input, back->output, back->force));
  });
}

}  // namespace kerncap::cli
