// kerncap inspect: what is in a snapshot, and what was NOT captured.
#include <algorithm>
#include <cstring>

#include "cli/program.h"
#include "cli/table.h"
#include "core/snapshot/reader.h"
#include "core/support/json.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

using snapshot::Dispatch;
using snapshot::Manifest;
using snapshot::Reader;
using snapshot::Region;
using support::dump_json;
using support::ExitCode;
using support::hex_string;
using support::human_bytes;
using support::Json;

struct Options {
  std::string snapshot;
  bool verify = false;
};

std::string agent_name(const Manifest& manifest, std::int32_t agent) {
  if (agent < 0) return "host";
  return fmt::format("{}#{}", manifest.agents[static_cast<std::size_t>(agent)].name, agent);
}

const Region* region_at(const Dispatch& dispatch, std::uint64_t address) {
  for (const Region& region : dispatch.regions) {
    if (address >= region.address && address - region.address < region.size) return &region;
  }
  return nullptr;
}

struct ArgumentRow {
  const codeobject::KernelArgument* argument = nullptr;
  std::string value;   // hexadecimal, little-endian word for sizes up to 8, bytes otherwise
  std::string points;  // what a pointer points into
};

std::vector<ArgumentRow> decode_kernarg(const Dispatch& dispatch, const std::vector<std::byte>& kernarg) {
  std::vector<ArgumentRow> rows;
  for (const codeobject::KernelArgument& argument : dispatch.kernel.arguments) {
    ArgumentRow row{&argument, "(outside of the captured segment)", ""};
    if (std::uint64_t{argument.offset} + argument.size <= kernarg.size()) {
      const std::byte* bytes = kernarg.data() + argument.offset;
      if (argument.size <= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, argument.size);
        row.value = hex_string(word);
        if (argument.size == 8 && word != 0) {
          if (const Region* region = region_at(dispatch, word)) {
            row.points =
                fmt::format("{} {:#x} + {:#x}", to_string(region->kind), region->address, word - region->address);
          }
        }
      } else {
        row.value.clear();
        const std::uint32_t shown = std::min<std::uint32_t>(argument.size, 32);
        for (std::uint32_t i = 0; i < shown; ++i) row.value += fmt::format("{:02x}", static_cast<unsigned>(bytes[i]));
        if (shown < argument.size) row.value += "...";
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::uint64_t changed_bytes(const Reader& reader, std::size_t dispatch, std::size_t region) {
  std::uint64_t bytes = 0;
  const std::uint64_t size = reader.manifest().dispatches[dispatch].regions[region].size;
  for (std::uint64_t chunk = 0; chunk < reader.chunks(dispatch, region); ++chunk) {
    if (reader.changed(dispatch, region, chunk))
      bytes += std::min(snapshot::chunk_size, size - chunk * snapshot::chunk_size);
  }
  return bytes;
}

std::string describe(const Reader& reader, std::size_t index) {
  const Manifest& manifest = reader.manifest();
  const Dispatch& d = manifest.dispatches[index];
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<14} {}\n", label, value);
  };
  line("kernel", d.kernel_demangled);
  line("symbol", d.kernel_symbol);
  line("grid", fmt::format("{} x {} x {} work-items in workgroups of {} x {} x {}", d.grid[0], d.grid[1], d.grid[2],
                           d.workgroup[0], d.workgroup[1], d.workgroup[2]));
  line("resources", fmt::format("{} VGPRs, {} SGPRs, {} B LDS, {} B scratch a work-item", d.kernel.vgprs,
                                d.kernel.sgprs, d.group_segment_size, d.private_segment_size));
  line("dispatch", fmt::format("{} of the process, {} of this kernel (from 0), on {}", d.index, d.kernel_index,
                               agent_name(manifest, d.agent)));
  line("device time", d.device_time ? human_time(static_cast<double>(*d.device_time)) : "not measured");
  line("code object", d.code_object);
  line("application", fmt::format("{}", fmt::join(d.command_line, " ")));
  line("state", d.has_after ? "before and after the kernel" : "BEFORE ONLY: " + d.incomplete_reason);

  text += "\nArguments\n";
  Table arguments({{"offset", Align::right}, {"size", Align::right}, {"kind"}, {"name"}, {"value"}, {"points into"}});
  for (const ArgumentRow& row : decode_kernarg(d, reader.kernarg(index))) {
    arguments.add({std::to_string(row.argument->offset), std::to_string(row.argument->size), row.argument->value_kind,
                   row.argument->name, row.value, row.points});
  }
  text += arguments.text();

  text += "\nMemory\n";
  Table regions({{"address"}, {"size", Align::right}, {"kind"}, {"owner"}, {"changed", Align::right}});
  for (std::size_t i = 0; i < d.regions.size(); ++i) {
    const Region& region = d.regions[i];
    const std::uint64_t changed = d.has_after ? changed_bytes(reader, index, i) : 0;
    regions.add({hex_string(region.address), human_bytes(region.size), to_string(region.kind),
                 agent_name(manifest, region.agent), changed == 0 ? "-" : human_bytes(changed)});
  }
  text += regions.text();

  text += "\nCoverage\n";
  Table coverage({{"kind"}, {"regions", Align::right}, {"captured", Align::right}});
  for (const snapshot::CoverageKind& kind : d.coverage) {
    coverage.add({kind.kind, std::to_string(kind.regions), human_bytes(kind.bytes)});
  }
  text += coverage.text();
  if (d.not_captured.empty()) {
    text += "\nNothing that was known to be device-visible is missing.\n";
  } else {
    text += "\nNOT captured\n";
    Table missing({{"address"}, {"size", Align::right}, {"kind"}, {"why"}});
    for (const snapshot::NotCaptured& range : d.not_captured) {
      missing.add({hex_string(range.address), human_bytes(range.size), range.kind, range.reason});
    }
    text += missing.text();
  }
  return text;
}

Json as_json(const Reader& reader) {
  Json document = to_json(reader.manifest());
  for (std::size_t i = 0; i < reader.manifest().dispatches.size(); ++i) {
    const Dispatch& d = reader.manifest().dispatches[i];
    Json arguments = Json::array();
    for (const ArgumentRow& row : decode_kernarg(d, reader.kernarg(i))) {
      arguments.push_back({{"name", row.argument->name},
                           {"kind", row.argument->value_kind},
                           {"offset", row.argument->offset},
                           {"size", row.argument->size},
                           {"value", row.value},
                           {"points_into", row.points}});
    }
    Json changed = Json::array();
    for (std::size_t r = 0; d.has_after && r < d.regions.size(); ++r) changed.push_back(changed_bytes(reader, i, r));
    document["dispatches"][i]["decoded_arguments"] = std::move(arguments);
    document["dispatches"][i]["changed_bytes_by_region"] = std::move(changed);
  }
  return document;
}

std::uint64_t total_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const Dispatch& dispatch : manifest.dispatches) {
    for (const Region& region : dispatch.regions) bytes += region.size;
  }
  return bytes;
}

ExitCode inspect(const Program& program, const Options& options) {
  const Reader reader(options.snapshot);
  if (options.verify) {
    std::vector<std::string> damages;
    {
      support::Progress progress("verifying " + options.snapshot, total_bytes(reader.manifest()), "bytes");
      damages = reader.verify([&](std::uint64_t bytes) { progress.advance(bytes); });
    }
    if (program.json) {
      print(dump_json(Json{{"snapshot", options.snapshot}, {"whole", damages.empty()}, {"damage", damages}}));
    } else {
      for (const std::string& damage : damages) print(damage + "\n");
      if (damages.empty()) print(options.snapshot + ": whole\n");
    }
    return damages.empty() ? ExitCode::done : ExitCode::bad_input;
  }
  if (program.json) {
    print(dump_json(as_json(reader)));
    return ExitCode::done;
  }
  for (std::size_t i = 0; i < reader.manifest().dispatches.size(); ++i) {
    if (i > 0) print("\n");
    print(describe(reader, i));
  }
  return ExitCode::done;
}

}  // namespace

void add_inspect(Program& program) {
  CLI::App& command = program.add("inspect", "Show what is in a snapshot, and what was NOT captured",
                                  "  kerncap inspect step.kcap\n  kerncap inspect step.kcap --json\n"
                                  "  kerncap inspect step.kcap --verify      read everything, check every hash\n");
  auto options = std::make_shared<Options>();
  command.add_option("snapshot", options->snapshot, "The snapshot folder (NAME.kcap)")->required();
  command.add_flag("--verify", options->verify, "Read all of it and check every hash");
  program.run_with(command, [&program, options] { return inspect(program, *options); });
}

}  // namespace kerncap::cli
