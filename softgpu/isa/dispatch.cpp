#include "softgpu/isa/dispatch.h"

#include <fmt/format.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace kerncap::softgpu::isa {
namespace {

constexpr u64 wave_slice = 4096;        // instructions before another wave of the workgroup has its turn
constexpr u64 group_slice = 65536;      // ... and before another workgroup has
constexpr u64 seeded_wave_slice = 256;  // the same with a seed: at most, by chance
constexpr u64 seeded_group_slice = 2048;
constexpr u64 polling_slice = 512;  // ... when all that a workgroup does is to wait for another
constexpr u64 blocked_limit =
    2'000'000'000;  // nanoseconds in which nothing but the grid's barriers is waited for: a deadlock
constexpr u64 polling_limit =
    30'000'000'000;                   // ... in which memory is polled: told, because the host may be what is waited for
constexpr u64 resident_waves = 4096;  // upper bound of started waves, as on a large GPU
constexpr u32 default_host_mode = 0x1f80;  // MXCSR: round to nearest, denormals kept, exceptions masked

bool is_terminal(DispatchStatus status) { return status != DispatchStatus::running && status != DispatchStatus::idle; }

class HostModeScope {
 public:
  HostModeScope() : saved_(_mm_getcsr()) { _mm_setcsr(default_host_mode); }
  ~HostModeScope() { _mm_setcsr(saved_); }
  HostModeScope(const HostModeScope&) = delete;
  HostModeScope& operator=(const HostModeScope&) = delete;

 private:
  unsigned saved_;
};

// splitmix64: the next number of a sequence.
u64 next_random(u64& state) {
  u64 x = state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// With a seed: another order within stretches of the grid. Hardware starts workgroups in order, so that one may wait
// for an earlier one; how far a later one gets before it is not promised.
u64 shuffled(u64 number, u64 total, u64 seed) {
  constexpr u64 stretch = 16;
  const u64 base = number / stretch * stretch, size = std::min(stretch, total - base);
  u64 state = seed ^ base * 0xd1342543de82ef95;
  std::array<u64, stretch> order{};
  for (u64 i = 0; i < size; ++i) {
    const u64 j = next_random(state) % (i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  return base + order[number - base];
}

// Loops that wait for somebody else's store are a handful of instructions around a load, a comparison and a branch. A
// kernel that looks like one and is none loses nothing but a little time, because its workgroups take turns more often.
bool polls(u64 instructions, const DispatchCounters& before, const DispatchCounters& after) {
  constexpr u64 longest_loop = 24;
  const u64 reads = after.vmem - before.vmem + after.smem - before.smem + after.lds - before.lds;
  return (after.branches - before.branches) * longest_loop >= instructions && reads * longest_loop >= instructions &&
         (after.valu - before.valu) * 2 <= instructions;
}

u64 nanoseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1'000'000'000 + static_cast<u64>(now.tv_nsec);
}

u64 run_wave(Wave& w, u64 budget) {
  const Operation* op = w.next;
  u64 left = budget;
  while (left != 0) {
    --left;
    op = op->execute.load(std::memory_order_relaxed)(w, op);
    if (op == nullptr) [[unlikely]]
      return budget - left;
  }
  w.next = op;
  return budget;
}

}  // namespace

void Engine::attach(AddressSpace* space, DispatchHost* its_host) {
  host = its_host;
  const u64 generation = space->generation();
  if (space == memory && generation == memory_generation) return;
  memory = space;
  memory_generation = generation;
  tlb.fill({});
}

std::byte* Engine::fill(TlbEntry& entry, u64 gpu_address, unsigned permissions) {
  constexpr unsigned both = unsigned{permission_read} | permission_write;
  unsigned granted = both;
  std::byte* host_pointer = memory->translate(gpu_address, both);
  if (host_pointer == nullptr) {
    granted = permissions;
    host_pointer = memory->translate(gpu_address, permissions);
    if (host_pointer == nullptr) return nullptr;
  }
  entry.page = gpu_address >> AddressSpace::page_bits;
  entry.permissions = granted;
  entry.host = host_pointer - (gpu_address & (AddressSpace::page_size - 1));
  return host_pointer;
}

void Wave::reserve_scratch(u64 bytes) {
  if (bytes <= scratch_capacity) return;
  std::free(scratch);
  scratch = static_cast<std::byte*>(std::calloc(bytes, 1));
  scratch_capacity = scratch == nullptr ? 0 : bytes;
  if (scratch == nullptr) throw std::bad_alloc();
}

Wave::Wave() {
  v = static_cast<u32*>(std::aligned_alloc(4096, (max_lane_registers + 16) * row_lanes * sizeof(u32)));
  if (v == nullptr) throw std::bad_alloc();
}
Wave::~Wave() {
  std::free(v);
  std::free(scratch);
}

const Operation* Wave::fail(const Operation* at, DispatchStatus status, std::string what) {
  DispatchError error;
  error.status = status;
  error.kernel_object = dispatch->request.packet.kernel_object;
  error.program_counter = address_of(*this, at);
  error.message = fmt::format("kernel object {:#x}, program counter {:#x}, {}: {}", error.kernel_object,
                              error.program_counter, code->describe(error.program_counter), what);
  dispatch->report(std::move(error));
  state = WaveState::failed;
  return nullptr;
}

const Operation* Wave::memory_fault(const Operation* at, u64 address, bool write) {
  DispatchError error;
  error.status = DispatchStatus::memory_fault;
  error.address = address;
  error.write = write;
  error.present = engine->memory->translate(address, permission_read) != nullptr ||
                  engine->memory->translate(address, permission_write) != nullptr;
  error.kernel_object = dispatch->request.packet.kernel_object;
  error.program_counter = address_of(*this, at);
  const bool private_memory = (address & ~(aperture_size - 1)) == scratch_aperture;
  error.message = fmt::format(
      "kernel object {:#x}, program counter {:#x}, {}: {} address {:#x}, which {}", error.kernel_object,
      error.program_counter, code->describe(error.program_counter), write ? "write to" : "read of", address,
      private_memory  ? fmt::format("is outside of the {} bytes of private memory of a work-item", scratch_bytes)
      : error.present ? "does not permit it"
                      : "is not mapped");
  dispatch->report(std::move(error));
  state = WaveState::failed;
  return nullptr;
}

void DispatchState::report(DispatchError what) {
  const std::scoped_lock lock(mutex);
  if (is_terminal(status.load())) return;
  status.store(what.status);
  error = std::move(what);
}

std::unique_ptr<Engine> Pool::take_engine() {
  const std::scoped_lock lock(mutex_);
  if (engines_.empty()) return std::make_unique<Engine>();
  auto engine = std::move(engines_.back());
  engines_.pop_back();
  return engine;
}
void Pool::give(std::unique_ptr<Engine> engine) {
  const std::scoped_lock lock(mutex_);
  engines_.push_back(std::move(engine));
}
std::unique_ptr<Wave> Pool::take_wave() {
  {
    const std::scoped_lock lock(mutex_);
    if (!waves_.empty()) {
      auto wave = std::move(waves_.back());
      waves_.pop_back();
      return wave;
    }
  }
  return std::make_unique<Wave>();
}
void Pool::give(std::unique_ptr<Wave> wave) {
  constexpr std::size_t kept_waves = 64;
  const std::scoped_lock lock(mutex_);
  if (waves_.size() < kept_waves) waves_.push_back(std::move(wave));
}
Pool::~Pool() = default;

RunningDispatch::RunningDispatch(const DispatchRequest& request, const Target& target, Pool& pool, DeviceState& device,
                                 std::atomic<unsigned>& active)
    : active_(active) {
  ++active_;
  state_.request = request;
  state_.target = &target;
  state_.pool = &pool;
  state_.device = &device;
  state_.random.seed(request.seed);
  if (request.seed != 0) state_.wanted_resident = 2 + state_.random() % 15;  // workgroups overlap from the start
  const auto& packet = request.packet;
  const auto refuse = [&](std::string why) {
    DispatchError error;
    error.status = DispatchStatus::bad_packet;
    error.kernel_object = packet.kernel_object;
    error.message = fmt::format("kernel object {:#x}: {}", packet.kernel_object, why);
    state_.report(std::move(error));
  };
  if (const std::string problem = read_kernel_info(*request.memory, packet.kernel_object, target, state_.kernel);
      !problem.empty()) {
    refuse(problem);
    return;
  }
  const u32 sizes[3] = {packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z};
  const u32 grid[3] = {packet.grid_size_x, packet.grid_size_y, packet.grid_size_z};
  constexpr u64 largest_workgroup = 1024;
  u64 items = 1;
  for (unsigned k = 0; k < 3; ++k) {
    if (sizes[k] == 0 || grid[k] == 0) {
      refuse("a size of the grid or of its workgroups is 0");
      return;
    }
    items *= sizes[k];
    state_.groups[k] = (grid[k] - 1) / sizes[k] + 1;
  }
  if (items > largest_workgroup) {
    refuse(fmt::format("a workgroup of {} work-items is larger than {}", items, largest_workgroup));
    return;
  }
  if (__builtin_mul_overflow(u64{state_.groups[0]} * state_.groups[1], u64{state_.groups[2]}, &state_.total_groups)) {
    refuse("the grid has too many workgroups");
    return;
  }
  const u32 lanes = state_.kernel.wave32 ? 32 : 64;
  state_.waves_per_group = static_cast<u32>((items + lanes - 1) / lanes);
  // Private memory comes in units of 1 KiB for a wave; the packet's size includes the stack of dynamic calls.
  const u64 unit = 1024 / lanes;
  const u64 wanted = std::max(packet.private_segment_size, state_.kernel.private_bytes);
  state_.private_bytes = (wanted + unit - 1) / unit * unit;
  constexpr u64 lds_unit = 512;
  state_.lds_bytes =
      (u64{std::max(packet.group_segment_size, state_.kernel.group_bytes)} + lds_unit - 1) / lds_unit * lds_unit;
  if (state_.lds_bytes > target.lds_bytes) {
    refuse(fmt::format("{} bytes of LDS are more than {}", state_.lds_bytes, target.lds_bytes));
    return;
  }
  constexpr u64 largest_private = 1u << 23;
  if (state_.private_bytes > largest_private) {
    refuse(fmt::format("{} bytes of private memory are too many", state_.private_bytes));
    return;
  }
}

RunningDispatch::~RunningDispatch() {
  for (auto& group : state_.ready)
    for (auto& wave : group->waves) state_.pool->give(std::move(wave));
  --active_;
}

// One workgroup at a time, as long as workgroups end. When a whole round of slices ends none, the kernel may be waiting
// for workgroups that have not started: twice as many become resident.
std::unique_ptr<Workgroup> RunningDispatch::take(bool& none_left) {
  u64 number = 0;
  {
    const std::scoped_lock lock(state_.mutex);
    none_left = false;
    const bool can_start = state_.next_group < state_.total_groups &&
                           (state_.resident == 0 || (state_.resident + 1) * state_.waves_per_group <= resident_waves);
    if (state_.unfinished_slices >= state_.resident && state_.resident != 0) {
      state_.wanted_resident = 2 * state_.resident;
      state_.unfinished_slices = 0;
    }
    if (!state_.ready.empty() && !(can_start && state_.resident < state_.wanted_resident)) {
      auto chosen = state_.ready.begin();
      if (state_.request.seed != 0) chosen += static_cast<std::ptrdiff_t>(state_.random() % state_.ready.size());
      auto group = std::move(*chosen);
      state_.ready.erase(chosen);
      ++state_.running;
      return group;
    }
    if (!can_start) {
      none_left = state_.ready.empty() && state_.running == 0;
      return nullptr;
    }
    number = state_.next_group++;
    ++state_.running;
    ++state_.resident;
  }
  const u64 seed = state_.request.seed;
  auto group = make_workgroup(state_, seed == 0 ? number : shuffled(number, state_.total_groups, seed));
  if (seed != 0) {
    group->random = seed ^ (number + 1) * 0x9fb21c651e98df25;
    group->cursor = static_cast<unsigned>(next_random(group->random) % group->waves.size());
  }
  return group;
}

// A kernel can only be told to be stuck for certain when every workgroup waits at a barrier that only workgroups which
// cannot start could complete. Polling may be ended by the host at any time: that is reported once, and stopped only
// when the user has set a limit.
void RunningDispatch::judge_waiting(const Workgroup& group) {
  Waiting& waiting = state_.waiting;
  if (!group.polls) {
    waiting = {0, 0, 0, waiting.told};
    return;
  }
  if (waiting.polling_slices++ == 0) waiting.since = nanoseconds_now();
  waiting.blocked_slices = group.blocked ? waiting.blocked_slices + 1 : 0;
  const bool all_poll = waiting.polling_slices > 2 * state_.resident,
             all_blocked = waiting.blocked_slices > 2 * state_.resident;
  const u64 user_limit = state_.request.patience;
  if (!all_poll || (!all_blocked && waiting.told && user_limit == 0)) return;
  const u64 waited = nanoseconds_now() - waiting.since;
  const bool stuck = all_blocked && waited > blocked_limit;
  const bool over = stuck || (user_limit != 0 && waited > user_limit);
  if (!over && (waiting.told || waited < polling_limit)) return;
  waiting.told = true;
  const Wave* wave = nullptr;
  for (const auto& each : group.waves)
    if (each->state != WaveState::done && (wave == nullptr || each->state == WaveState::ready)) wave = each.get();
  const u64 counter = wave == nullptr || wave->next == nullptr ? 0 : address_of(*wave, wave->next);
  const std::string text = fmt::format(
      "kernel object {:#x}, program counter {:#x}, {}: for {} seconds its {} resident workgroups of {} have only "
      "waited {}; {} have not "
      "started, {} have ended",
      state_.request.packet.kernel_object, counter, wave == nullptr ? std::string("?") : wave->code->describe(counter),
      waited / 1'000'000'000, state_.resident, state_.total_groups,
      all_blocked ? "at barriers of the grid" : "for memory to change", state_.total_groups - state_.next_group,
      state_.finished_groups);
  if (!over) {
    state_.request.host->notice(text);
    return;
  }
  if (is_terminal(state_.status.load())) return;
  state_.error = {};
  state_.error.status = DispatchStatus::deadlock;
  state_.error.kernel_object = state_.request.packet.kernel_object;
  state_.error.program_counter = counter;
  state_.error.message = text + ": a deadlock";
  state_.status.store(DispatchStatus::deadlock);
}

void RunningDispatch::give_back(std::unique_ptr<Workgroup> group) {
  if (group->live == 0)
    for (auto& wave : group->waves) state_.pool->give(std::move(wave));
  const std::scoped_lock lock(state_.mutex);
  --state_.running;
  if (group->live == 0) {
    ++state_.finished_groups;
    ++state_.counters.workgroups;
    state_.counters.waves += group->waves.size();
    --state_.resident;
    state_.unfinished_slices = 0;
    state_.waiting = {};
    if (state_.finished_groups == state_.total_groups && !is_terminal(state_.status.load()))
      state_.status.store(DispatchStatus::done);
  } else {
    ++state_.unfinished_slices;
    judge_waiting(*group);
    state_.ready.push_back(std::move(group));
  }
}

u64 RunningDispatch::run_slice(Workgroup& group, Engine& engine, u64 budget) {
  u64 used = 0;
  const DispatchCounters before = engine.counters;
  const auto count = static_cast<unsigned>(group.waves.size());
  while (group.live != 0 && used < budget) {
    bool progress = false;
    for (unsigned turn = 0; turn < count && used < budget; ++turn) {
      Wave& w = *group.waves[group.cursor];
      group.cursor = group.cursor + 1 == count ? 0 : group.cursor + 1;
      if (w.state != WaveState::ready) continue;
      w.engine = &engine;
      w.yielded = false;
      const u64 slice = group.random == 0 ? wave_slice : 1 + next_random(group.random) % seeded_wave_slice;
      used += run_wave(w, std::min(slice, budget - used));
      progress |= !w.yielded;
      if (w.state == WaveState::failed) return used;
      if (w.state == WaveState::done) --group.live;
      if (group.waiting != 0 && group.waiting == group.live) {
        group.waiting = 0;
        for (auto& wave : group.waves)
          if (wave->state == WaveState::barrier) wave->state = WaveState::ready;
      }
    }
    if (!progress) {  // everyone sleeps: let another workgroup run
      group.polls = true;
      group.blocked = std::ranges::all_of(group.waves, [](const auto& wave) {
        return wave->in_global_sync || wave->state == WaveState::barrier || wave->state == WaveState::done;
      });
      return used;
    }
  }
  group.polls = polls(used, before, engine.counters);
  group.blocked = false;
  return used;
}

DispatchStatus RunningDispatch::advance(std::uint64_t instructions) noexcept {
  if (const DispatchStatus status = state_.status.load(); is_terminal(status)) return status;
  try {
    const HostModeScope host_mode;
    auto engine = state_.pool->take_engine();
    engine->attach(state_.request.memory, state_.request.host);
    engine->counters = {};
    engine->count_details = state_.request.count_details;
    u64 used = 0;
    bool idle = false;
    while (used < instructions && !is_terminal(state_.status.load())) {
      bool none_left = false;
      auto group = take(none_left);
      if (group == nullptr) {
        idle = true;
        break;
      }
      const u64 slice = group->random == 0 ? (group->polls ? polling_slice : group_slice)
                                           : 1 + next_random(group->random) % seeded_group_slice;
      used += run_slice(*group, *engine, std::min(slice, std::max<u64>(instructions - used, 1)));
      give_back(std::move(group));
    }
    engine->counters.wave_instructions = used;
    {
      const std::scoped_lock lock(state_.mutex);
      const DispatchCounters& more = engine->counters;
      DispatchCounters& sum = state_.counters;
      sum.wave_instructions += more.wave_instructions;
      sum.valu += more.valu;
      sum.vmem += more.vmem;
      sum.smem += more.smem;
      sum.lds += more.lds;
      sum.branches += more.branches;
      sum.bytes_read += more.bytes_read;
      sum.bytes_written += more.bytes_written;
      sum.matrix += more.matrix;
      sum.partial_valu += more.partial_valu;
      sum.inactive_lanes += more.inactive_lanes;
      sum.lds_bank_conflicts += more.lds_bank_conflicts;
      for (std::size_t k = 0; k < traffic_kinds; ++k) {
        sum.memory[k].bytes_read += more.memory[k].bytes_read;
        sum.memory[k].bytes_written += more.memory[k].bytes_written;
      }
      sum.salu = sum.wave_instructions - sum.valu - sum.vmem - sum.smem - sum.lds - sum.branches;
    }
    state_.pool->give(std::move(engine));
    const DispatchStatus status = state_.status.load();
    return is_terminal(status) ? status : idle ? DispatchStatus::idle : DispatchStatus::running;
  } catch (const std::exception& problem) {
    DispatchError error;
    error.status = DispatchStatus::bad_packet;
    error.kernel_object = state_.request.packet.kernel_object;
    error.message = fmt::format("kernel object {:#x}: {}", error.kernel_object, problem.what());
    state_.report(std::move(error));
    return state_.status.load();
  }
}

DispatchError RunningDispatch::error() const {
  const std::scoped_lock lock(state_.mutex);
  return state_.error;
}
DispatchCounters RunningDispatch::counters() const {
  const std::scoped_lock lock(state_.mutex);
  return state_.counters;
}

}  // namespace kerncap::softgpu::isa
