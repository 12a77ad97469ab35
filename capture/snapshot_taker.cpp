#include "capture/snapshot_taker.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/support/error.h"
#include "core/support/progress.h"

namespace kerncap::capture {
namespace {

using snapshot::Region;
using snapshot::RegionKind;
using support::ExitCode;
using support::fail;

RegionKind kind_of(const PoolInfo& pool) {
  if (!pool.gpu) {
    if ((pool.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0) return RegionKind::host_kernarg;
    return (pool.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0 ? RegionKind::host_coarse
                                                                              : RegionKind::host_fine;
  }
  // HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED of ROCr 6.
  constexpr std::uint32_t extended_scope = 8;
  if ((pool.flags & extended_scope) != 0) return RegionKind::device_extended;
  return (pool.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0 ? RegionKind::device_fine
                                                                          : RegionKind::device_coarse;
}

struct Mapped {
  std::uint64_t begin, end;
};

// /proc/self/maps: what the process has mapped, ascending.
std::vector<Mapped> mapped_ranges() {
  std::vector<Mapped> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (!out.empty() && out.back().end == begin)
      out.back().end = end;
    else
      out.push_back({begin, end});
  }
  return out;
}

// The parts of managed memory that still exist: the application gives it back by munmap, which nobody tells us of.
std::vector<Allocation> still_mapped(const std::vector<Allocation>& all) {
  if (std::none_of(all.begin(), all.end(), [](const auto& a) { return a.kind == RegionKind::managed; })) return all;
  std::vector<Region> holes;
  std::uint64_t end = 0;
  for (const Mapped& range : mapped_ranges()) {
    if (range.begin > end) {
      Region& hole = holes.emplace_back();
      hole.address = end;
      hole.size = range.begin - end;
    }
    end = range.end;
  }
  std::vector<Allocation> out;
  for (const Allocation& a : all) {
    if (a.kind != RegionKind::managed) {
      out.push_back(a);
      continue;
    }
    for (const Allocation& part : without({a}, holes)) out.push_back(part);
  }
  return out;
}

// Every byte of the region could be read.
bool is_whole(const snapshot::Dispatch& d, const Region& region) {
  return std::none_of(d.not_captured.begin(), d.not_captured.end(), [&](const snapshot::NotCaptured& missing) {
    return missing.size != 0 && missing.address - region.address < region.size;
  });
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    out.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

SnapshotTaker::SnapshotTaker(Session& session) : session_(session), agents_(session.agents()), copier_(agents_) {
  snapshot::WriterOptions options;
  options.replace = session.config.replace;
  options.threads = session.config.threads;
  options.compression_level = session.config.compression_level;
  writer_ = std::make_unique<snapshot::Writer>(session.config.output, options);
  manifest_.kerncap_version = KERNCAP_VERSION;
  manifest_.runtime_version = agents_.runtime_version();
  manifest_.agents = agents_.gpus();
}

SnapshotTaker::~SnapshotTaker() { writer_.reset(); }  // releases every buffer of copier_

const CodeDescription& SnapshotTaker::description(const std::string& digest) {
  const auto found = descriptions_.find(digest);
  if (found != descriptions_.end()) return found->second;
  const LoadedCode& load = known_code_.at(digest);
  return descriptions_.emplace(digest, companion().describe(session_.code.bytes(load), digest)).first->second;
}

void SnapshotTaker::begin(const Request& request, snapshot::Dispatch& d) {
  d.header = request.packet.header;
  d.setup = request.packet.setup;
  d.grid = {request.packet.grid_size_x, request.packet.grid_size_y, request.packet.grid_size_z};
  d.workgroup = {request.packet.workgroup_size_x, request.packet.workgroup_size_y, request.packet.workgroup_size_z};
  d.private_segment_size = request.packet.private_segment_size;
  d.group_segment_size = request.packet.group_segment_size;
  d.kernel_object = request.packet.kernel_object;
  d.kernarg_address = reinterpret_cast<std::uint64_t>(request.packet.kernarg_address);
  d.kernel_symbol = request.kernel->record->symbol;
  d.kernel_demangled = request.kernel->record->demangled;
  d.queue_type = queue_type_name(request.queue->type);
  d.index = request.index;
  d.kernel_index = request.kernel_index;
  d.process = static_cast<std::uint64_t>(session_.process);
  d.command_line = command_line();
  const AgentInfo* agent = agents_.find(request.queue->agent.handle);
  if (agent == nullptr || !agent->gpu) fail(ExitCode::environment, "the kernel's queue belongs to no GPU");
  d.agent = agent->index;
  find_code(d, request);
  find_regions(d, request.queue->agent);
  for (const Region& region : d.regions) d.visible_bytes += region.size;
  if (session_.config.reachable_only) {
    d.scope = snapshot::Scope::reachable;  // how much that is comes out while it is read
  } else if (session_.config.max_bytes != 0 && d.visible_bytes > session_.config.max_bytes) {
    fail(ExitCode::answer_is_no,
         "the device can reach {} in {} regions at this dispatch and at most {} may be captured; raise --max-bytes or "
         "restrict the snapshot with --scope reachable",
         support::human_bytes(d.visible_bytes), d.regions.size(), support::human_bytes(session_.config.max_bytes));
  }
  number_ = writer_->begin_dispatch(d.regions);
  host_pages_.clear();
  unstable_.clear();
  done_ = 0;
  total_ = session_.config.reachable_only ? 0 : 2 * d.visible_bytes;  // before and after
  session_.update_status([&](Status& s) {
    s.bytes_done = 0;
    s.bytes_total = total_;
  });
}

void SnapshotTaker::find_code(snapshot::Dispatch& d, const Request& request) {
  for (const LoadedCode& load : session_.code.loads()) {
    const AgentInfo* agent = agents_.find(load.agent);
    if (agent == nullptr || !agent->gpu || load.size == 0) continue;
    snapshot::CodeObjectLoad& out = d.loads.emplace_back();
    out.digest = session_.code.digest(load);
    out.agent = agent->index;
    out.load_base = load.base;
    out.load_size = load.size;
    out.load_delta = load.delta;
    known_code_.emplace(out.digest, load);
    if (request.packet.kernel_object - load.base < load.size) d.code_object = out.digest;
  }
  if (d.code_object.empty())
    fail(ExitCode::environment, "the kernel object {:#x} lies in no loaded code object", request.packet.kernel_object);
  for (const codeobject::Kernel& kernel : description(d.code_object).kernels)
    if (kernel.symbol == d.kernel_symbol || kernel.name == d.kernel_symbol) d.kernel = kernel;
  if (d.kernel.name.empty()) {
    // Hand-written code without metadata: what the runtime says.
    d.kernel.name = d.kernel.symbol = d.kernel_symbol;
    d.kernel.demangled = d.kernel_demangled;
    d.kernel.kernarg_size = request.kernel->kernarg_size;
    d.kernel.group_segment_size = request.kernel->group_segment_size;
    d.kernel.private_segment_size = request.kernel->private_segment_size;
  }
}

void SnapshotTaker::find_regions(snapshot::Dispatch& d, hsa_agent_t kernel_agent) {
  std::vector<Region> code;
  for (const snapshot::CodeObjectLoad& load : d.loads) {
    Region& region = code.emplace_back();
    region.address = load.load_base;
    region.size = load.load_size;
    region.kind = RegionKind::code_object;
    region.agent = load.agent;
    region.code_object = load.digest;
  }
  std::sort(code.begin(), code.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  std::vector<Allocation> allocations;
  {
    const std::lock_guard lock(session_.memory_mutex);
    allocations = session_.memory.list();
  }
  struct Entry {
    Region region;
    Source source;
  };
  std::vector<Entry> entries;
  for (const Allocation& a : without(still_mapped(allocations), code)) {
    Entry& e = entries.emplace_back();
    e.region.address = e.source.address = a.address;
    e.region.size = e.source.size = a.size;
    e.region.kind = a.kind;
    e.region.pool_flags = a.pool_flags;
    e.region.allocation_flags = a.allocation_flags;
    e.source.host = a.host;
    e.source.host_address = a.host_address != 0 ? a.host_address : a.address;
    e.source.volatile_mapping = a.host;  // the application's own pages
    e.source.agent = hsa_agent_t{a.agent};
    if (a.host_address != a.address) e.region.host_address = a.host_address;
    const PoolInfo* pool = a.pool != 0 ? agents_.pool(a.pool) : nullptr;
    if (pool != nullptr) {
      if (a.kind != RegionKind::vmem) e.region.kind = kind_of(*pool);
      e.region.pool_flags = pool->flags;
      e.region.agent = pool->index;
      e.source.agent = pool->agent;
      e.source.host = !pool->gpu && a.kind != RegionKind::vmem;
    } else if (a.kind == RegionKind::ipc || a.kind == RegionKind::vmem) {
      // Another process's memory. Runtimes name its owner badly (ROCr 5.2: the CPU), and the host may have no access to
      // it: a device copies it, the kernel's own when nobody knows a better one.
      const AgentInfo* agent = a.agent != 0 ? agents_.find(a.agent) : nullptr;
      const bool known = agent != nullptr && agent->gpu;
      e.region.agent = known ? agent->index : d.agent;
      e.source.agent = known ? agent->agent : kernel_agent;
    } else if (const AgentInfo* agent = a.agent != 0 ? agents_.find(a.agent) : nullptr) {
      e.region.agent = agent->index;
      if (!agent->gpu) e.source.host = e.source.volatile_mapping = true;
    } else if (!a.host) {
      d.not_captured.push_back({a.address, a.size, snapshot::to_string(a.kind), "its owner is unknown to the runtime"});
      entries.pop_back();
    }
  }
  for (const Region& region : code) {
    Entry& e = entries.emplace_back();
    e.region = region;
    e.source.address = region.address;
    e.source.size = region.size;
    for (const AgentInfo* agent = nullptr; const hsa_agent_t handle : agents_.gpu_handles())
      if (agent = agents_.find(handle.handle); agent->index == region.agent) e.source.agent = handle;
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.region.address < b.region.address; });
  sources_.clear();
  for (Entry& e : entries) {
    d.regions.push_back(std::move(e.region));
    sources_.push_back(e.source);
  }
  if (agents_.pageable_access())
    d.not_captured.push_back(
        {0, 0, "pageable",
         "kernels may reach any host memory of this process (HMM); only what is registered is captured"});
}

void SnapshotTaker::write_code(const snapshot::Dispatch& d) {
  for (const snapshot::CodeObjectLoad& load : d.loads)
    if (written_code_.insert(load.digest).second)  // a library's code may be hundreds of MB: once for all dispatches
      writer_->add_code_object(load.digest, session_.code.bytes(known_code_.at(load.digest)));
}

void SnapshotTaker::read_before(snapshot::Dispatch& d) {
  std::vector<CodeRange> ranges;
  for (const snapshot::CodeObjectLoad& load : d.loads)
    ranges.push_back({load.load_base, load.load_size, load.load_delta, load.digest});
  CodePointerFinder pointers(std::move(ranges));
  const std::vector<std::byte> arguments = read_kernarg(d);
  std::vector<snapshot::NotCaptured> left_out;
  if (d.scope == snapshot::Scope::reachable)
    left_out = read_reachable(d, arguments, pointers);
  else
    read(d, snapshot::State::before, &pointers);
  write_code(d);
  d.code_pointers_complete = pointers.complete();
  d.code_pointers = pointers.take(
      [&](const std::string& digest) -> const std::vector<CodeSymbol>& { return description(digest).symbols; });
  for (const Region& region : d.regions) {
    const char* kind = snapshot::to_string(region.kind);
    auto found = std::find_if(d.coverage.begin(), d.coverage.end(), [&](const auto& c) { return c.kind == kind; });
    if (found == d.coverage.end()) found = d.coverage.insert(found, {kind, 0, 0});
    ++found->regions;
    found->bytes += region.size;
  }
  for (const snapshot::NotCaptured& missing : d.not_captured)
    for (snapshot::CoverageKind& kind : d.coverage)
      if (kind.kind == missing.kind) kind.bytes -= std::min(kind.bytes, missing.size);
  settle_host(d);
  d.not_captured.insert(d.not_captured.end(), left_out.begin(), left_out.end());
}

void SnapshotTaker::settle_host(const snapshot::Dispatch& d) {
  constexpr unsigned rounds = 3;  // a host thread that stores now and then misses one of them
  for (unsigned round = 1; round <= rounds; ++round) {
    writer_->drain();  // what was put is in its place: what is put again replaces it
    unstable_.clear();
    for (std::size_t r = 0; r < d.regions.size(); ++r) {
      if (!sources_[r].host || !is_whole(d, d.regions[r])) continue;
      copier_.read(
          sources_[r], [&, r](std::uint64_t offset, std::span<const std::byte> bytes, std::function<void()> release) {
            const Region& region = d.regions[r];
            const std::shared_ptr<void> done(nullptr, [release = std::move(release)](void*) { release(); });
            for (const std::uint64_t chunk : host_pages_.changed(region.address, offset, bytes)) {
              const std::uint64_t size = std::min(snapshot::chunk_size, region.size - chunk);
              unstable_.push_back(
                  {region.address + chunk, size, snapshot::to_string(region.kind),
                   "a host thread kept writing here while the kernel was held: the state before may mix what "
                   "was there at several moments"});
              writer_->put(number_, r, snapshot::State::before, chunk, bytes.subspan(chunk - offset, size), [done] {});
            }
          });
    }
    // Unmapped meanwhile: the state before is what was read the first time.
    static_cast<void>(copier_.finish());
    if (unstable_.empty()) return;
  }
}

std::vector<snapshot::NotCaptured> SnapshotTaker::read_reachable(snapshot::Dispatch& d,
                                                                 std::span<const std::byte> arguments,
                                                                 CodePointerFinder& pointers) {
  Reach reach(d.regions);
  reach.scan_arguments(arguments);
  std::optional<std::size_t> kernarg;
  for (std::size_t r = 0; r < d.regions.size(); ++r) {
    const Region& region = d.regions[r];
    // The kernel's own code holds the device globals that it names.
    if (region.kind == RegionKind::code_object && d.kernel_object - region.address < region.size) reach.add(r);
    if (d.kernarg_address - region.address < region.size) kernarg = r;
  }
  std::uint64_t bytes = 0;
  const auto take = [&](std::size_t r, Reach* scanned) {
    bytes += d.regions[r].size;
    if (session_.config.max_bytes != 0 && bytes > session_.config.max_bytes)
      fail(ExitCode::answer_is_no, "the kernel can reach more than the {} that may be captured; raise --max-bytes",
           support::human_bytes(session_.config.max_bytes));
    total_ = 2 * bytes;
    read_region(d, r, snapshot::State::before, scanned != nullptr ? &pointers : nullptr, scanned);
  };
  for (std::optional<std::size_t> r = reach.next(); r; r = reach.next()) {
    take(*r, &reach);
    // What the last pieces point to comes out when they have arrived.
    if (reach.idle()) finish_reading(d, snapshot::State::before);
  }
  // The arguments' own allocation holds those of many dispatches: it is kept whole, but not everything that some old
  // argument points to.
  if (kernarg && !reach.reached(*kernarg)) {
    take(*kernarg, nullptr);
    finish_reading(d, snapshot::State::before);
    pointers.scan(d.kernarg_address, arguments);
  }
  return keep_only(d, [&](std::size_t r) { return reach.reached(r) || r == kernarg; });
}

std::vector<snapshot::NotCaptured> SnapshotTaker::keep_only(snapshot::Dispatch& d,
                                                            const std::function<bool(std::size_t)>& wanted) {
  std::vector<snapshot::NotCaptured> left_out;
  std::vector<bool> keep;
  std::vector<Region> regions;
  std::vector<Source> sources;
  std::vector<std::uint64_t> bases;  // of the code that stays
  for (std::size_t r = 0; r < d.regions.size(); ++r) {
    Region& region = d.regions[r];
    keep.push_back(wanted(r));
    if (!keep.back()) {
      left_out.push_back({region.address, region.size, snapshot::to_string(region.kind),
                          "left out by --scope reachable: no pointer leads there from the kernel's arguments"});
      continue;
    }
    if (region.kind == RegionKind::code_object) bases.push_back(region.address);
    regions.push_back(std::move(region));
    sources.push_back(sources_[r]);
  }
  writer_->keep_regions(number_, keep);
  d.regions = std::move(regions);
  sources_ = std::move(sources);
  std::erase_if(d.loads, [&](const snapshot::CodeObjectLoad& load) {
    return std::find(bases.begin(), bases.end(), load.load_base) == bases.end();
  });
  return left_out;
}

std::vector<std::byte> SnapshotTaker::read_kernarg(const snapshot::Dispatch& d) {
  const std::uint32_t size = d.kernel.kernarg_size;
  std::vector<std::byte> bytes;
  if (size != 0 && d.kernarg_address != 0) {
    Source source;
    for (const Source& s : sources_)
      if (d.kernarg_address - s.address < s.size) {
        source = s;
        source.host_address += d.kernarg_address - s.address;
      }
    if (source.size == 0) {  // memory that we do not know: the host's, or nobody's
      source.host = source.volatile_mapping = true;
      source.host_address = d.kernarg_address;
    }
    source.address = d.kernarg_address;
    source.size = size;
    bytes.resize(size);
    copier_.read(source, [&](std::uint64_t offset, std::span<const std::byte> part, std::function<void()> release) {
      std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
      release();
    });
    if (!copier_.finish().empty())
      fail(ExitCode::environment, "the kernel's arguments at {:#x} cannot be read", d.kernarg_address);
  }
  writer_->set_kernarg(number_, bytes);
  return bytes;
}

void SnapshotTaker::read_region(const snapshot::Dispatch& d, std::size_t r, snapshot::State state,
                                CodePointerFinder* pointers, Reach* reach) {
  const std::uint64_t address = d.regions[r].address;
  copier_.read(sources_[r], [this, r, state, address, pointers, reach](
                                std::uint64_t offset, std::span<const std::byte> bytes, std::function<void()> release) {
    if (pointers != nullptr) pointers->scan(address + offset, bytes);
    if (reach != nullptr) reach->scan(address + offset, bytes);
    if (state == snapshot::State::before && sources_[r].host) host_pages_.remember(address, offset, bytes);
    progress(bytes.size());
    writer_->put(number_, r, state, offset, bytes, std::move(release));
  });
}

void SnapshotTaker::read(snapshot::Dispatch& d, snapshot::State state, CodePointerFinder* pointers) {
  // Host threads go on storing into host memory: it is read nearest to the kernel, last before and first after.
  for (const bool host : {state == snapshot::State::after, state == snapshot::State::before})
    for (std::size_t r = 0; r < d.regions.size(); ++r)
      if (sources_[r].host == host) read_region(d, r, state, pointers, nullptr);
  finish_reading(d, state);
}

void SnapshotTaker::finish_reading(snapshot::Dispatch& d, snapshot::State state) {
  for (const Unreadable& range : copier_.finish()) {
    std::string kind = "unknown";
    for (const Region& region : d.regions)
      if (range.address - region.address < region.size) kind = snapshot::to_string(region.kind);
    if (state == snapshot::State::after)
      fail(ExitCode::environment, "memory at {:#x} could be read before the kernel and not after it: {}", range.address,
           range.reason);
    d.not_captured.push_back({range.address, range.size, kind, range.reason});
  }
}

void SnapshotTaker::read_after(snapshot::Dispatch& d) {
  // What could not be read before is not asked for again: nobody could compare it.
  std::vector<Source> all = sources_;
  for (std::size_t r = 0; r < sources_.size(); ++r)
    if (!is_whole(d, d.regions[r])) sources_[r].size = 0;
  read(d, snapshot::State::after, nullptr);
  sources_ = std::move(all);
}

void SnapshotTaker::progress(std::uint64_t bytes) {
  done_ += bytes;
  const auto now = std::chrono::steady_clock::now();
  if (now - published_ < std::chrono::milliseconds(500)) return;
  published_ = now;
  session_.update_status([&](Status& s) {
    s.bytes_done = done_;
    s.bytes_total = total_;
  });
}

void SnapshotTaker::add(snapshot::Dispatch dispatch) {
  dispatch.not_captured.insert(dispatch.not_captured.end(), unstable_.begin(), unstable_.end());
  manifest_.dispatches.push_back(std::move(dispatch));
}

snapshot::WriterStatistics SnapshotTaker::commit() {
  writer_->commit(std::move(manifest_));
  return writer_->statistics();
}

}  // namespace kerncap::capture
