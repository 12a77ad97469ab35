#include "cli/snapshot_show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "cli/table.h"
#include "core/support/progress.h"
#include "replay/arguments.h"

namespace kerncap::cli {
namespace {

using snapshot::Dispatch;
using snapshot::Manifest;
using snapshot::MemoryDifference;
using snapshot::Reader;
using snapshot::Region;
using snapshot::State;
using support::hex_string;
using support::human_bytes;
using support::Json;

const Region* region_at(const Dispatch& dispatch, std::uint64_t address) {
  for (const Region& region : dispatch.regions) {
    if (address >= region.address && address - region.address < region.size) return &region;
  }
  return nullptr;
}

std::string bytes_text(const std::byte* bytes, std::uint32_t size) {
  constexpr std::uint32_t shown = 32;
  std::string text;
  for (std::uint32_t i = 0; i < std::min(size, shown); ++i)
    text += fmt::format("{:02x}", static_cast<unsigned>(bytes[i]));
  return size > shown ? text + "..." : text;
}

std::string value_text(const std::string& type, const std::byte* bytes, std::uint32_t size) {
  const auto element = replay::element_type(type);
  if (element && replay::size_of(*element) == size) return replay::element_text(*element, bytes);
  if (size > 8) return bytes_text(bytes, size);
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return hex_string(word);
}

// The argument that an address belongs to, and the element there before and after, as far as types are known.
struct Element {
  std::string argument, before, after;
};
Element element_at(const Reader& first, std::size_t dispatch_first, State state_first, std::size_t region_first,
                   const Reader& second, std::size_t dispatch_second, State state_second, std::size_t region_second,
                   std::uint64_t address) {
  const Dispatch& d = first.manifest().dispatches[dispatch_first];
  const Region& region = d.regions[region_first];
  const auto arguments = replay::kernel_arguments(d, first.kernarg(dispatch_first), std::nullopt, {});
  Element out;
  replay::ElementType type = replay::ElementType::bytes;
  std::uint64_t begin = region.address;
  for (const replay::Span& span : replay::spans_of(region, arguments, {})) {
    if (address - span.address >= span.size || span.argument < 0) continue;
    const replay::Argument& owner = arguments[static_cast<std::size_t>(span.argument)];
    out.argument = owner.label();
    type = span.element;
    begin = span.address;
  }
  const std::uint64_t width = replay::size_of(type);
  const std::uint64_t offset = begin + (address - begin) / width * width - region.address;
  const Region& other = second.manifest().dispatches[dispatch_second].regions[region_second];
  if (offset + width > std::min(region.size, other.size)) return out;
  std::vector<std::byte> bytes(width);
  first.read(dispatch_first, region_first, state_first, offset, bytes);
  out.before = replay::element_text(type, bytes.data());
  second.read(dispatch_second, region_second, state_second, offset, bytes);
  out.after = replay::element_text(type, bytes.data());
  return out;
}

std::string first_difference(const MemoryDifference& one, const Element& element) {
  std::string text = fmt::format("{:#x}", one.first);
  if (!element.argument.empty()) text += fmt::format(" ({})", element.argument);
  if (!element.before.empty()) text += fmt::format(": {} -> {}", element.before, element.after);
  return text;
}

Json as_json(const MemoryDifference& one, const Element& element) {
  return {{"address", hex_string(one.address)},
          {"size", one.size},
          {"bytes", one.bytes},
          {"first", hex_string(one.first)},
          {"last", hex_string(one.last)},
          {"argument", element.argument},
          {"element_before", element.before},
          {"element_after", element.after}};
}

}  // namespace

std::string agent_name(const Manifest& manifest, std::int32_t agent) {
  if (agent < 0) return "host";
  return fmt::format("{}#{}", manifest.agents[static_cast<std::size_t>(agent)].name, agent);
}

std::vector<ShownArgument> decode_kernarg(const Dispatch& dispatch, const std::vector<std::byte>& kernarg) {
  // Types of the kernel's own parameters, in order; the runtime's hidden ones have none.
  const auto own = replay::kernel_arguments(dispatch, kernarg, std::nullopt, {});
  std::vector<ShownArgument> out;
  std::size_t number = 0;
  for (const codeobject::KernelArgument& argument : dispatch.kernel.arguments) {
    ShownArgument shown{argument.offset,
                        argument.size,
                        argument.value_kind,
                        argument.name,
                        argument.type_name,
                        "(outside of the captured segment)",
                        ""};
    if (!argument.hidden() && number < own.size()) shown.type = own[number++].type;
    if (std::uint64_t{argument.offset} + argument.size <= kernarg.size()) {
      const std::byte* bytes = kernarg.data() + argument.offset;
      shown.value = value_text(shown.type, bytes, argument.size);
      std::uint64_t word = 0;
      if (argument.size == 8) std::memcpy(&word, bytes, sizeof word);
      if (const Region* region = word != 0 ? region_at(dispatch, word) : nullptr)
        shown.points_into =
            fmt::format("{} {:#x} + {:#x}", to_string(region->kind), region->address, word - region->address);
    }
    out.push_back(std::move(shown));
  }
  return out;
}

std::string describe(const Reader& reader, std::size_t index, const snapshot::ReadProgress& progress) {
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
  std::uint64_t captured = 0;
  for (const Region& region : d.regions) captured += region.size;
  line("memory", fmt::format("{} in {} regions; the device could reach {}", human_bytes(captured), d.regions.size(),
                             human_bytes(d.visible_bytes)));

  text += "\nArguments\n";
  Table arguments(
      {{"offset", Align::right}, {"size", Align::right}, {"kind"}, {"name"}, {"type"}, {"value"}, {"points into"}});
  for (const ShownArgument& a : decode_kernarg(d, reader.kernarg(index)))
    arguments.add({std::to_string(a.offset), std::to_string(a.size), a.kind, a.name, a.type, a.value, a.points_into});
  text += arguments.text();

  const auto changed = changes(reader, index, progress);
  const auto change_of = [&](std::size_t region) {
    const auto found = std::ranges::find(changed, region, &MemoryDifference::region_first);
    return found == changed.end() ? nullptr : &*found;
  };
  text += "\nMemory\n";
  Table regions({{"address"}, {"size", Align::right}, {"kind"}, {"owner"}, {"changed", Align::right}});
  for (std::size_t i = 0; i < d.regions.size(); ++i) {
    const Region& region = d.regions[i];
    const MemoryDifference* change = change_of(i);
    regions.add({hex_string(region.address), human_bytes(region.size), to_string(region.kind),
                 agent_name(manifest, region.agent), change == nullptr ? "-" : human_bytes(change->bytes)});
  }
  text += regions.text();
  if (!changed.empty()) {
    text += "\nChanged by the kernel\n";
    Table table({{"region"}, {"bytes", Align::right}, {"first"}});
    for (const MemoryDifference& one : changed)
      table.add({hex_string(one.address), std::to_string(one.bytes),
                 first_difference(one, element_at(reader, index, State::before, one.region_first, reader, index,
                                                  State::after, one.region_second, one.first))});
    text += table.text();
  }

  text += "\nCoverage\n";
  Table coverage({{"kind"}, {"regions", Align::right}, {"captured", Align::right}});
  for (const snapshot::CoverageKind& kind : d.coverage)
    coverage.add({kind.kind, std::to_string(kind.regions), human_bytes(kind.bytes)});
  text += coverage.text();
  if (d.not_captured.empty()) {
    text += "\nNothing that was known to be device-visible is missing.\n";
    return text;
  }
  text += "\nNOT captured\n";
  Table missing({{"address"}, {"size", Align::right}, {"kind"}, {"why"}});
  for (const snapshot::NotCaptured& range : d.not_captured)
    missing.add({hex_string(range.address), human_bytes(range.size), range.kind, range.reason});
  text += missing.text();
  if (d.scope == snapshot::Scope::reachable)
    text += "\nA replay fails when the kernel touches what was left out; capture with --scope everything then.\n";
  return text;
}

Json as_json(const Reader& reader, const snapshot::ReadProgress& progress) {
  Json document = to_json(reader.manifest());
  for (std::size_t i = 0; i < reader.manifest().dispatches.size(); ++i) {
    const Dispatch& d = reader.manifest().dispatches[i];
    Json arguments = Json::array();
    for (const ShownArgument& a : decode_kernarg(d, reader.kernarg(i)))
      arguments.push_back({{"name", a.name},
                           {"kind", a.kind},
                           {"type", a.type},
                           {"offset", a.offset},
                           {"size", a.size},
                           {"value", a.value},
                           {"points_into", a.points_into}});
    Json by_region = Json::array(), changed = Json::array();
    for (std::size_t r = 0; d.has_after && r < d.regions.size(); ++r) by_region.push_back(0);
    for (const MemoryDifference& one : changes(reader, i, progress)) {
      by_region[one.region_first] = one.bytes;
      changed.push_back(as_json(one, element_at(reader, i, State::before, one.region_first, reader, i, State::after,
                                                one.region_second, one.first)));
    }
    Json& out = document["dispatches"][i];
    out["decoded_arguments"] = std::move(arguments);
    out["changed_bytes_by_region"] = std::move(by_region);
    out["changes"] = std::move(changed);
  }
  return document;
}

std::string describe(const snapshot::Difference& difference, const Reader& first, std::size_t dispatch_first,
                     const Reader& second, std::size_t dispatch_second) {
  if (difference.same()) return "no difference\n";
  const Dispatch& a = first.manifest().dispatches[dispatch_first];
  const Dispatch& b = second.manifest().dispatches[dispatch_second];
  std::string text;
  const auto heading = [&](std::string_view title) { text += fmt::format("{}{}\n", text.empty() ? "" : "\n", title); };
  if (!difference.launch.empty()) {
    heading("Launch");
    Table table({{"what"}, {"first"}, {"second"}});
    for (const auto& one : difference.launch) table.add({one.field, one.first, one.second});
    text += table.text();
  }
  if (!difference.kernarg.empty()) {
    heading("Arguments");
    Table table({{"offset", Align::right}, {"size", Align::right}, {"name"}, {"first"}, {"second"}});
    const auto bytes_first = first.kernarg(dispatch_first), bytes_second = second.kernarg(dispatch_second);
    const auto shown_first = decode_kernarg(a, bytes_first), shown_second = decode_kernarg(b, bytes_second);
    const auto raw = [](const std::vector<std::byte>& bytes, const snapshot::KernargDifference& one) {
      if (one.offset >= bytes.size()) return std::string("-");
      return bytes_text(bytes.data() + one.offset,
                        std::min<std::uint32_t>(one.size, static_cast<std::uint32_t>(bytes.size()) - one.offset));
    };
    for (const auto& one : difference.kernarg) {
      const bool known = one.argument.has_value();
      table.add({std::to_string(one.offset), std::to_string(one.size), known ? shown_first[*one.argument].name : "",
                 known ? shown_first[*one.argument].value : raw(bytes_first, one),
                 known ? shown_second[*one.argument].value : raw(bytes_second, one)});
    }
    text += table.text();
  }
  if (!difference.removed.empty() || !difference.added.empty()) {
    heading("Regions of one side only");
    Table table({{"side"}, {"address"}, {"size", Align::right}, {"kind"}});
    const auto add = [&](const char* side, const Region& region) {
      table.add({side, hex_string(region.address), human_bytes(region.size), to_string(region.kind)});
    };
    for (const std::size_t r : difference.removed) add("first", a.regions[r]);
    for (const std::size_t r : difference.added) add("second", b.regions[r]);
    text += table.text();
  }
  if (!difference.regions.empty()) {
    heading("Regions");
    Table table({{"what"}, {"first"}, {"second"}});
    for (const auto& one : difference.regions) table.add({one.field, one.first, one.second});
    text += table.text();
  }
  for (const State state : {State::before, State::after}) {
    const auto& list = state == State::before ? difference.before : difference.after;
    if (list.empty()) continue;
    heading(state == State::before ? "Memory before the kernel" : "Memory after the kernel");
    Table table({{"region"}, {"size", Align::right}, {"bytes", Align::right}, {"first"}});
    for (const MemoryDifference& one : list)
      table.add({hex_string(one.address), human_bytes(one.size), std::to_string(one.bytes),
                 first_difference(one, element_at(first, dispatch_first, state, one.region_first, second,
                                                  dispatch_second, state, one.region_second, one.first))});
    text += table.text();
  }
  return text;
}

Json as_json(const snapshot::Difference& difference, const Reader& first, std::size_t dispatch_first,
             const Reader& second, std::size_t dispatch_second) {
  const auto fields = [](const std::vector<snapshot::FieldDifference>& list) {
    Json out = Json::array();
    for (const auto& one : list) out.push_back({{"what", one.field}, {"first", one.first}, {"second", one.second}});
    return out;
  };
  const auto regions = [](const Dispatch& d, const std::vector<std::size_t>& list) {
    Json out = Json::array();
    for (const std::size_t r : list)
      out.push_back({{"address", hex_string(d.regions[r].address)},
                     {"size", d.regions[r].size},
                     {"kind", to_string(d.regions[r].kind)}});
    return out;
  };
  const auto memory = [&](const std::vector<MemoryDifference>& list, State state) {
    Json out = Json::array();
    for (const MemoryDifference& one : list)
      out.push_back(as_json(one, element_at(first, dispatch_first, state, one.region_first, second, dispatch_second,
                                            state, one.region_second, one.first)));
    return out;
  };
  const Dispatch& a = first.manifest().dispatches[dispatch_first];
  const Dispatch& b = second.manifest().dispatches[dispatch_second];
  const auto shown_first = decode_kernarg(a, first.kernarg(dispatch_first));
  const auto shown_second = decode_kernarg(b, second.kernarg(dispatch_second));
  Json arguments = Json::array();
  for (const auto& one : difference.kernarg) {
    Json entry = {{"offset", one.offset}, {"size", one.size}};
    if (one.argument) {
      entry["name"] = shown_first[*one.argument].name;
      entry["first"] = shown_first[*one.argument].value;
      entry["second"] = shown_second[*one.argument].value;
    }
    arguments.push_back(std::move(entry));
  }
  return {{"first_dispatch", dispatch_first},
          {"second_dispatch", dispatch_second},
          {"same", difference.same()},
          {"launch", fields(difference.launch)},
          {"arguments", std::move(arguments)},
          {"removed", regions(a, difference.removed)},
          {"added", regions(b, difference.added)},
          {"regions", fields(difference.regions)},
          {"before", memory(difference.before, State::before)},
          {"after", memory(difference.after, State::after)}};
}

}  // namespace kerncap::cli
