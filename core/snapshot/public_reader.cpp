// The library behind include/kerncap/snapshot.h: Reader in types that never change.
#include <set>

#include "core/snapshot/include/kerncap/snapshot.h"
#include "core/snapshot/reader.h"
#include "core/support/error.h"

namespace kerncap {
namespace {

SnapshotError::Kind kind_of(support::ExitCode code) {
  switch (code) {
    case support::ExitCode::usage:
      return SnapshotError::Kind::wrong_use;
    case support::ExitCode::environment:
      return SnapshotError::Kind::environment;
    default:
      return SnapshotError::Kind::damaged;
  }
}

// Nothing of ours crosses the border.
template <typename Function>
auto guarded(Function&& function) {
  try {
    return function();
  } catch (const support::Error& error) {
    throw SnapshotError(kind_of(error.code()), error.what());
  }
}

snapshot::State inner(Snapshot::State state) {
  return state == Snapshot::State::before ? snapshot::State::before : snapshot::State::after;
}

Snapshot::Dispatch outer(const snapshot::Dispatch& d) {
  Snapshot::Dispatch out;
  out.kernel_symbol = d.kernel_symbol;
  out.kernel_name = d.kernel_demangled;
  out.code_object = d.code_object;
  for (std::size_t i = 0; i < 3; ++i) {
    out.grid[i] = d.grid[i];
    out.workgroup[i] = d.workgroup[i];
  }
  out.private_segment_size = d.private_segment_size;
  out.group_segment_size = d.group_segment_size;
  out.kernel_object = d.kernel_object;
  out.kernarg_address = d.kernarg_address;
  out.agent = d.agent;
  out.index = d.index;
  out.kernel_index = d.kernel_index;
  if (d.device_time) out.device_time = static_cast<std::int64_t>(*d.device_time);
  out.has_after = d.has_after;
  out.incomplete_reason = d.incomplete_reason;
  out.reachable_only = d.scope == snapshot::Scope::reachable;
  out.visible_bytes = d.visible_bytes;
  for (const codeobject::KernelArgument& a : d.kernel.arguments)
    out.arguments.push_back({a.name, a.type_name, a.value_kind, a.offset, a.size});
  for (const snapshot::Region& r : d.regions)
    out.regions.push_back({r.address, r.size, to_string(r.kind), r.agent, r.pool_flags});
  for (const snapshot::NotCaptured& n : d.not_captured)
    out.not_captured.push_back({n.address, n.size, n.kind, n.reason});
  std::set<std::string> digests = {d.code_object};
  for (const snapshot::CodeObjectLoad& load : d.loads) digests.insert(load.digest);
  out.code_objects.assign(digests.begin(), digests.end());
  return out;
}

}  // namespace

SnapshotError::SnapshotError(Kind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
SnapshotError::~SnapshotError() = default;

struct Snapshot::Implementation {
  snapshot::Reader reader;
  std::vector<Agent> agents;
  std::vector<Dispatch> dispatches;

  explicit Implementation(const std::string& folder) : reader(folder) {
    for (const snapshot::Agent& a : reader.manifest().agents)
      agents.push_back({a.name, a.isa, a.product, a.compute_units, a.wavefront_size, a.memory_bytes});
    for (const snapshot::Dispatch& d : reader.manifest().dispatches) dispatches.push_back(outer(d));
  }
};

Snapshot::Snapshot(const std::string& folder)
    : implementation_(guarded([&] { return std::make_unique<Implementation>(folder); })) {}
Snapshot::~Snapshot() = default;
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;

const std::vector<Snapshot::Agent>& Snapshot::agents() const { return implementation_->agents; }
std::size_t Snapshot::dispatch_count() const { return implementation_->dispatches.size(); }

const Snapshot::Dispatch& Snapshot::dispatch(std::size_t number) const {
  if (number >= implementation_->dispatches.size())
    throw SnapshotError(SnapshotError::Kind::wrong_use,
                        fmt::format("the snapshot has {} dispatches and no number {}", dispatch_count(), number));
  return implementation_->dispatches[number];
}

void Snapshot::read(std::size_t dispatch, std::size_t region, State state, std::uint64_t offset, void* to,
                    std::size_t size) const {
  guarded([&] {
    implementation_->reader.read(dispatch, region, inner(state), offset, std::span(static_cast<std::byte*>(to), size));
  });
}

void Snapshot::read_address(std::size_t dispatch_number, State state, std::uint64_t address, void* to,
                            std::size_t size) const {
  const std::vector<Region>& regions = dispatch(dispatch_number).regions;
  for (std::size_t r = 0; r < regions.size(); ++r)
    if (address >= regions[r].address && address - regions[r].address < regions[r].size)
      return read(dispatch_number, r, state, address - regions[r].address, to, size);
  throw SnapshotError(SnapshotError::Kind::wrong_use, fmt::format("no region covers the address {:#x}", address));
}

bool Snapshot::changed(std::size_t dispatch, std::size_t region, std::uint64_t chunk) const {
  return guarded([&] { return implementation_->reader.changed(dispatch, region, chunk); });
}

bool Snapshot::is_zero(std::size_t dispatch, std::size_t region, State state, std::uint64_t chunk) const {
  return guarded([&] { return implementation_->reader.is_zero(dispatch, region, inner(state), chunk); });
}

std::vector<std::byte> Snapshot::kernarg(std::size_t dispatch) const {
  return guarded([&] { return implementation_->reader.kernarg(dispatch); });
}

std::vector<std::byte> Snapshot::code_object(const std::string& digest) const {
  return guarded([&] { return implementation_->reader.code_object(digest); });
}

std::vector<std::string> Snapshot::verify() const {
  return guarded([&] { return implementation_->reader.verify({}); });
}

}  // namespace kerncap
