#include "core/snapshot/difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

namespace kerncap::snapshot {
namespace {

// One region in one state.
struct Bytes {
  const Reader& reader;
  std::size_t dispatch, region;
  State state;
};

// The first `size` bytes of two regions that begin at the same address, so that their chunks lie alike.
MemoryDifference differing_bytes(const Bytes& a, const Bytes& b, std::uint64_t size, const ReadProgress& progress) {
  MemoryDifference out;
  out.address = a.reader.manifest().dispatches[a.dispatch].regions[a.region].address;
  out.size = size;
  out.region_first = a.region;
  out.region_second = b.region;
  std::array<std::byte, chunk_size> left, right;
  for (std::uint64_t chunk = 0, offset = 0; offset < size; ++chunk, offset += chunk_size) {
    const std::uint64_t length = std::min(chunk_size, size - offset);
    if (progress) progress(length);
    if (a.reader.checksum(a.dispatch, a.region, a.state, chunk) ==
        b.reader.checksum(b.dispatch, b.region, b.state, chunk))
      continue;
    a.reader.read(a.dispatch, a.region, a.state, offset, std::span(left).first(length));
    b.reader.read(b.dispatch, b.region, b.state, offset, std::span(right).first(length));
    for (std::uint64_t i = 0; i < length; ++i) {
      if (left[i] == right[i]) continue;
      out.last = out.address + offset + i;
      if (out.bytes++ == 0) out.first = out.last;
    }
  }
  return out;
}

std::string shape(const std::array<std::uint32_t, 3>& extent) { return fmt::format("{}", fmt::join(extent, " x ")); }

std::string isa(const Manifest& manifest, std::int32_t agent) {
  return agent < 0 ? "host" : manifest.agents[static_cast<std::size_t>(agent)].isa;
}

std::vector<FieldDifference> launch_differences(const Manifest& ma, const Dispatch& a, const Manifest& mb,
                                                const Dispatch& b) {
  std::vector<FieldDifference> out;
  const auto compare = [&](const char* field, std::string first, std::string second) {
    if (first != second) out.push_back({field, std::move(first), std::move(second)});
  };
  const auto hex = [](std::uint64_t value) { return fmt::format("{:#x}", value); };
  compare("kernel", a.kernel_demangled, b.kernel_demangled);
  compare("symbol", a.kernel_symbol, b.kernel_symbol);
  compare("code object", a.code_object, b.code_object);
  compare("grid", shape(a.grid), shape(b.grid));
  compare("workgroup", shape(a.workgroup), shape(b.workgroup));
  compare("dimensions", hex(a.setup), hex(b.setup));
  compare("packet header", hex(a.header), hex(b.header));
  compare("group segment", std::to_string(a.group_segment_size), std::to_string(b.group_segment_size));
  compare("private segment", std::to_string(a.private_segment_size), std::to_string(b.private_segment_size));
  compare("kernel object", hex(a.kernel_object), hex(b.kernel_object));
  compare("kernarg address", hex(a.kernarg_address), hex(b.kernarg_address));
  compare("queue", a.queue_type, b.queue_type);
  compare("device", isa(ma, a.agent), isa(mb, b.agent));
  compare("state after the kernel", a.has_after ? "captured" : a.incomplete_reason,
          b.has_after ? "captured" : b.incomplete_reason);
  compare("scope", to_string(a.scope), to_string(b.scope));
  return out;
}

std::vector<KernargDifference> kernarg_differences(const Dispatch& a, const std::vector<std::byte>& left,
                                                   const Dispatch& b, const std::vector<std::byte>& right) {
  std::vector<KernargDifference> out;
  std::vector<bool> explained(std::max(left.size(), right.size()));
  const auto differs = [&](std::size_t at) { return at >= left.size() || at >= right.size() || left[at] != right[at]; };
  if (a.kernel.arguments == b.kernel.arguments) {
    for (std::size_t i = 0; i < a.kernel.arguments.size(); ++i) {
      const codeobject::KernelArgument& argument = a.kernel.arguments[i];
      const std::uint64_t end =
          std::min<std::uint64_t>(std::uint64_t{argument.offset} + argument.size, explained.size());
      bool different = false;
      for (std::uint64_t at = argument.offset; at < end; ++at) {
        different |= differs(at);
        explained[at] = true;
      }
      if (different) out.push_back({argument.offset, argument.size, i});
    }
  }
  for (std::size_t at = 0; at < explained.size();) {
    std::size_t end = at;
    while (end < explained.size() && !explained[end] && differs(end)) ++end;
    if (end > at) out.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end - at), std::nullopt});
    at = end + 1;
  }
  return out;
}

void compare_attributes(const Manifest& ma, const Region& a, const Manifest& mb, const Region& b,
                        std::vector<FieldDifference>& out) {
  const auto compare = [&](const char* field, std::string first, std::string second) {
    if (first != second)
      out.push_back({fmt::format("{} of {:#x}", field, a.address), std::move(first), std::move(second)});
  };
  compare("size", std::to_string(a.size), std::to_string(b.size));
  compare("kind", to_string(a.kind), to_string(b.kind));
  compare("owner", isa(ma, a.agent), isa(mb, b.agent));
  compare("pool flags", fmt::format("{:#x}", a.pool_flags), fmt::format("{:#x}", b.pool_flags));
  compare("allocation flags", fmt::format("{:#x}", a.allocation_flags), fmt::format("{:#x}", b.allocation_flags));
  compare("code object", a.code_object, b.code_object);
}

}  // namespace

bool Difference::same() const {
  return launch.empty() && kernarg.empty() && removed.empty() && added.empty() && regions.empty() && before.empty() &&
         after.empty();
}

std::vector<MemoryDifference> changes(const Reader& reader, std::size_t dispatch, const ReadProgress& progress) {
  std::vector<MemoryDifference> out;
  const Dispatch& d = reader.manifest().dispatches[dispatch];
  for (std::size_t r = 0; d.has_after && r < d.regions.size(); ++r) {
    const MemoryDifference one = differing_bytes({reader, dispatch, r, State::before},
                                                 {reader, dispatch, r, State::after}, d.regions[r].size, progress);
    if (one.bytes != 0) out.push_back(one);
  }
  return out;
}

Difference compare(const Reader& first, std::size_t dispatch_first, const Reader& second, std::size_t dispatch_second,
                   const ReadProgress& progress) {
  const Manifest &ma = first.manifest(), &mb = second.manifest();
  const Dispatch &a = ma.dispatches[dispatch_first], &b = mb.dispatches[dispatch_second];
  Difference out;
  out.launch = launch_differences(ma, a, mb, b);
  out.kernarg = kernarg_differences(a, first.kernarg(dispatch_first), b, second.kernarg(dispatch_second));
  std::map<std::uint64_t, std::size_t> in_second;
  for (std::size_t r = 0; r < b.regions.size(); ++r) in_second[b.regions[r].address] = r;
  for (std::size_t r = 0; r < a.regions.size(); ++r) {
    const auto found = in_second.find(a.regions[r].address);
    if (found == in_second.end()) {
      out.removed.push_back(r);
      continue;
    }
    const std::size_t other = found->second;
    in_second.erase(found);
    compare_attributes(ma, a.regions[r], mb, b.regions[other], out.regions);
    const std::uint64_t size = std::min(a.regions[r].size, b.regions[other].size);
    for (const State state : {State::before, State::after}) {
      if (state == State::after && (!a.has_after || !b.has_after)) continue;
      const MemoryDifference one =
          differing_bytes({first, dispatch_first, r, state}, {second, dispatch_second, other, state}, size, progress);
      if (one.bytes != 0) (state == State::before ? out.before : out.after).push_back(one);
    }
  }
  for (const auto& [address, region] : in_second) out.added.push_back(region);
  return out;
}

}  // namespace kerncap::snapshot
