#include "replay/worker.h"

#include <fmt/format.h>
#include <hsa/amd_hsa_queue.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/snapshot/reader.h"
#include "core/support/file.h"
#include "replay/channel.h"
#include "replay/host_calls.h"
#include "replay/kernarg.h"
#include "replay/memory.h"
#include "replay/software_gpu.h"
#include "replay/state.h"

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;
using support::Json;

// At least as many as waves can run at a time on the largest GPUs.
constexpr std::size_t host_call_packets = 16384;

class Session {
 public:
  Session(const Options& options, Channel& channel) : options_(options), channel_(channel) {}

  void set_up();
  // Another candidate in place of the last one. False: answered with an error; the next one may still come.
  bool load(const std::filesystem::path& code_object);
  // False: the process is of no more use (fault, hang).
  bool run(const Json& command);

 private:
  void phase(const std::string& text) { channel_.send({{"event", "phase"}, {"text", text}}); }
  void reserve_ranges();
  Patches prepare_launch(const snapshot::Reader& reader);
  void place_kernarg(const snapshot::Reader& reader, const snapshot::Dispatch& dispatch, Patches& patches);
  std::uint64_t host_call_buffer(const codeobject::Kernel& kernel);
  void send_ready();
  Json arguments_json() const;
  std::string argument_value(const Argument& argument) const;
  void know_what_is_dirty();
  bool set_trial(const Json& command);
  void check_launch() const;
  void compare_own_kernarg(Comparing& comparing) const;
  std::string fault_text(std::uint64_t address) const;

  const Options& options_;
  Channel& channel_;
  snapshot::Dispatch dispatch_;
  Plan plan_;
  std::unique_ptr<Device> device_;
  Program program_;
  std::vector<Argument> arguments_;
  std::unique_ptr<State> state_;
  Launch launch_;
  std::vector<std::string> notes_;
  std::vector<std::byte> kernarg_;      // as captured
  std::vector<std::byte> own_kernarg_;  // when it cannot lie at the captured address
  void* kernarg_memory_ = nullptr;      // ... where it lies then
  std::size_t kernarg_room_ = 0;
  Input input_;
  ValidateRules rules_;
  std::vector<std::string> plan_notes_;
  std::uint64_t restored_bytes_ = 0;  // by the last restore
  double restore_ns_ = 0;
  std::uint64_t written_bytes_ = 0;  // at first, of all memory
  double write_ns_ = 0;
  std::unique_ptr<HostCalls> host_calls_;  // of kernels that print
  HostCallBuffer* host_call_memory_ = nullptr;
  hsa_signal_t host_call_doorbell_{};
  void restart_host_calls();
  bool fresh_ = false;     // memory is exactly the before state
  bool in_trial_ = false;  // ... of a trial on changed inputs
  bool known_ = true;      // what the last run dirtied is known
};

void Session::reserve_ranges() {
  plan_ = make_plan(dispatch_, {});
  try {
    reserve(plan_);
  } catch (const Occupied&) {
    // Perhaps only the surroundings of small allocations are taken.
    PlanOptions one_by_one;
    one_by_one.group_blocks = false;
    plan_ = make_plan(dispatch_, one_by_one);
    reserve(plan_);
  }
}

// What the application's runtime would refuse to launch must not be judged by what happens when it is launched anyway.
void Session::check_launch() const {
  const std::uint64_t lds = device_->dispatch_agent().lds_bytes;
  if (lds != 0 && launch_.group_segment_size > lds) {
    fail(ExitCode::answer_is_no, "the kernel asks for {} bytes of LDS a workgroup, and {} has {}",
         launch_.group_segment_size, device_->dispatch_agent().name, lds);
  }
  const std::uint64_t threads = std::uint64_t{launch_.workgroup[0]} * launch_.workgroup[1] * launch_.workgroup[2];
  const std::uint32_t most = program_.kernel.max_flat_workgroup_size;
  if (most != 0 && threads > most) {
    fail(ExitCode::answer_is_no,
         "the kernel is compiled for workgroups of at most {} work-items, and the application "
         "launches {}",
         most, threads);
  }
}

void Session::place_kernarg(const snapshot::Reader& reader, const snapshot::Dispatch& dispatch, Patches& patches) {
  const std::vector<std::byte> captured = reader.kernarg(options_.dispatch);
  const auto* queue = device_->queue();
  ProcessValues values;
  values.queue = reinterpret_cast<std::uint64_t>(queue);
  // The runtime's hsa_queue_t is the head of an amd_queue_t (amd_hsa_queue.h), which has the aperture bases.
  const auto* amd_queue = reinterpret_cast<const amd_queue_t*>(queue);
  values.shared_base = amd_queue->group_segment_aperture_base_hi;
  values.private_base = amd_queue->private_segment_aperture_base_hi;
  values.host_calls = host_call_buffer(program_.kernel);
  values.grid = dispatch.grid;
  values.workgroup = dispatch.workgroup;
  values.dimensions = dispatch.setup & 3;
  const KernargResult built = build_kernarg(dispatch.kernel, captured, program_.kernel, values);
  notes_.insert(notes_.end(), built.notes.begin(), built.notes.end());

  const std::uint64_t address = dispatch.kernarg_address;
  const bool inside = std::any_of(dispatch.regions.begin(), dispatch.regions.end(), [&](const snapshot::Region& r) {
    return address >= r.address && address - r.address < r.size && captured.size() <= r.size - (address - r.address) &&
           r.kind != snapshot::RegionKind::code_object;
  });
  if (inside && built.bytes.size() <= captured.size()) {
    launch_.kernarg_address = address;
    for (std::size_t i = 0; i < built.bytes.size(); ++i) {
      if (built.bytes[i] == captured[i]) continue;
      std::size_t end = i + 1;
      while (end < built.bytes.size() && built.bytes[end] != captured[end]) ++end;
      patches.add(address + i, std::span(captured).subspan(i, end - i), std::span(built.bytes).subspan(i, end - i));
      i = end - 1;
    }
    return;
  }
  if (built.bytes.size() > kernarg_room_) {
    kernarg_room_ = std::max<std::size_t>(built.bytes.size(), 4096);
    check(hsa().hsa_amd_memory_pool_allocate(device_->kernarg_pool().handle, kernarg_room_, 0, &kernarg_memory_),
          "allocating the kernel's arguments");
    check(hsa().hsa_amd_agents_allow_access(1, &device_->dispatch_agent().handle, nullptr, kernarg_memory_),
          "giving the GPU access to the kernel's arguments");
  }
  own_kernarg_ = built.bytes;
  launch_.kernarg_address = reinterpret_cast<std::uint64_t>(kernarg_memory_);
}

// Where the kernel finds somebody who answers its calls to the host; 0 for a kernel that makes none.
std::uint64_t Session::host_call_buffer(const codeobject::Kernel& kernel) {
  host_calls_.reset();
  const bool calls = std::any_of(kernel.arguments.begin(), kernel.arguments.end(),
                                 [](const auto& argument) { return argument.value_kind == "hidden_hostcall_buffer"; });
  if (!calls) return 0;
  if (host_call_memory_ == nullptr) {
    Placement like;
    like.kind = snapshot::RegionKind::host_fine;
    void* memory = nullptr;
    check(
        hsa().hsa_amd_memory_pool_allocate(device_->pool(like).handle, host_call_bytes(host_call_packets), 0, &memory),
        "allocating a buffer for the kernel's calls to the host");
    check(hsa().hsa_amd_agents_allow_access(1, &device_->dispatch_agent().handle, nullptr, memory),
          "giving the GPU access to the buffer for its calls to the host");
    check(hsa().hsa_signal_create(0, 0, nullptr, &host_call_doorbell_), "creating a signal");
    host_call_memory_ = static_cast<HostCallBuffer*>(memory);
  }
  restart_host_calls();
  return reinterpret_cast<std::uint64_t>(host_call_memory_);
}

// Each run begins with an empty buffer and nothing printed.
void Session::restart_host_calls() {
  const std::span memory(reinterpret_cast<std::byte*>(host_call_memory_), host_call_bytes(host_call_packets));
  make_host_call_buffer(memory, host_call_packets, host_call_doorbell_.handle);
  host_calls_ = std::make_unique<HostCalls>(host_call_memory_, host_call_packets);
}

std::vector<std::byte> file_bytes(const std::filesystem::path& path) {
  const std::string text = support::read_text_file(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

double nanoseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

void Session::set_up() {
  input_ = resolve_input(options_.input);
  auto reader = std::make_unique<snapshot::Reader>(input_.snapshot);
  const snapshot::Manifest& manifest = reader->manifest();
  if (options_.dispatch >= manifest.dispatches.size()) {
    fail(ExitCode::usage, "the snapshot has {} dispatch{}, so there is no number {}", manifest.dispatches.size(),
         manifest.dispatches.size() == 1 ? "" : "es", options_.dispatch);
  }
  if (manifest.backend != "hsa") {
    fail(ExitCode::bad_input, "the snapshot was taken over '{}'; this replayer knows 'hsa'", manifest.backend);
  }
  dispatch_ = manifest.dispatches[options_.dispatch];
  for (const std::uint32_t size : dispatch_.workgroup) {
    if (size == 0 || size > UINT16_MAX)
      fail(ExitCode::bad_input, "the snapshot's workgroup size {} is impossible", size);
  }
  reserve_ranges();
  notes_ = plan_.notes;

  // Before the runtime starts: every allocation by itself, aligned as little as the plan needs.
  ::setenv("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1", 1);
  if (plan_.needs_page_alignment) ::setenv("HSA_MAX_VA_ALIGN", "0", 1);
  std::optional<std::vector<std::byte>> candidate;
  std::string candidate_name;
  if (options_.code_object && !options_.await_candidates) {
    candidate_name = options_.code_object->string();
    candidate = file_bytes(*options_.code_object);
    read_code_image(*candidate, candidate_name);  // a bad file is the user's error, not this machine's
  }
  phase("starting the ROCm runtime");
  if (!hsa().has_vmem()) {
    for (Placement& placement : plan_.placements) {
      if (placement.method != Method::vmem) continue;
      placement.method = Method::pool;
      placement.kind = placement.agent < 0 ? snapshot::RegionKind::host_fine : snapshot::RegionKind::device_coarse;
      placement.pool_flags = placement.allocation_flags = 0;
      notes_.emplace_back("this runtime has no virtual-memory functions: such memory is replayed as plain allocations");
    }
  }
  device_ = std::make_unique<Device>(manifest, dispatch_);
  phase("allocating the captured memory");
  allocate(plan_, *device_);
  start_copying(*device_);
  phase("loading the code objects");
  program_ = options_.await_candidates
                 ? load_surroundings(*reader, options_.dispatch, *device_, plan_)
                 : load_program(*reader, options_.dispatch, *device_, plan_, candidate, candidate_name);
  device_->create_queue(dispatch_.queue_type);
  plan_notes_ = notes_;
  if (input_.rules) rules_ = read_rules(*input_.rules);
  for (const std::string& rule : options_.tolerances) add_rule(rules_, rule);
  std::optional<KernelSource> source;
  if (options_.kernel_json) {
    source = read_kernel_json(*options_.kernel_json);
  } else if (input_.kernel_json) {
    source = read_kernel_json(*input_.kernel_json);
  }
  kernarg_ = reader->kernarg(options_.dispatch);
  arguments_ = kernel_arguments(dispatch_, kernarg_, source, rules_);
  check_rules(arguments_, rules_);
  Patches patches;
  if (!options_.await_candidates) patches = prepare_launch(*reader);
  reader.reset();  // the snapshot's files stay closed while kernels run
  state_ = std::make_unique<State>(input_.snapshot, options_.dispatch, plan_, program_, arguments_, rules_,
                                   std::move(patches));
  phase("writing the captured memory");
  const auto start = std::chrono::steady_clock::now();
  state_->write_all();
  write_ns_ = nanoseconds_since(start);
  for (const snapshot::Region& region : dispatch_.regions) written_bytes_ += region.size;
  fresh_ = true;
  if (options_.await_candidates) {
    channel_.send({{"event", "waiting"}});
  } else {
    send_ready();
  }
}

// The packet and the kernel's arguments for the program that is loaded; returns what has to be patched in memory.
Patches Session::prepare_launch(const snapshot::Reader& reader) {
  notes_ = plan_notes_;
  notes_.insert(notes_.end(), program_.notes.begin(), program_.notes.end());
  launch_ = {};
  launch_.header = dispatch_.header;
  launch_.setup = dispatch_.setup;
  launch_.grid = dispatch_.grid;
  launch_.workgroup = dispatch_.workgroup;
  launch_.private_segment_size = program_.private_segment_size;
  launch_.group_segment_size = program_.group_segment_size;
  launch_.kernel_object = program_.kernel_object;
  check_launch();
  own_kernarg_.clear();
  Patches patches = program_.pointers;
  place_kernarg(reader, dispatch_, patches);
  return patches;
}

void Session::know_what_is_dirty() {
  if (known_) return;
  state_->compare(Extent::everything, {});
  known_ = true;
}

bool Session::load(const std::filesystem::path& code_object) {
  know_what_is_dirty();
  phase("loading the code object");
  try {
    const std::string name = code_object.string();
    const std::vector<std::byte> candidate = file_bytes(code_object);
    read_code_image(candidate, name);
    const snapshot::Reader reader(input_.snapshot);
    replace_candidate(program_, reader, options_.dispatch, *device_, plan_, candidate, name);
    Patches patches = prepare_launch(reader);
    phase("restoring the captured memory");
    const auto start = std::chrono::steady_clock::now();
    restored_bytes_ = state_->retarget(arguments_, std::move(patches));
    restore_ns_ = nanoseconds_since(start);
  } catch (const support::Error& error) {
    channel_.send({{"event", "error"}, {"code", static_cast<int>(error.code())}, {"sentence", error.what()}});
    return false;
  }
  fresh_ = true;
  in_trial_ = false;
  send_ready();
  return true;
}

void Session::send_ready() {
  // What a trial may flip: memory that the kernel could write, whose old content may not matter, and data of single
  // bytes (text, pixels). Other constant integers are likely to be indices and sizes.
  std::vector<std::string> flippable;
  for (const Argument& argument : arguments_) {
    const bool single_bytes = argument.element == ElementType::u8 || argument.element == ElementType::i8;
    if (!argument.pointer || argument.member || is_floating(argument.element)) continue;
    if (single_bytes || !argument.points_to_const) flippable.push_back(argument.label());
  }
  channel_.send({{"event", "ready"},
                 {"flippable", flippable},
                 {"kernel", dispatch_.kernel_demangled.empty() ? dispatch_.kernel_symbol : dispatch_.kernel_demangled},
                 {"agent", device_->dispatch_agent().isa},
                 {"has_after", dispatch_.has_after},
                 {"incomplete_reason", dispatch_.incomplete_reason},
                 {"noise_runs", rules_.noise_runs},
                 {"software_gpu", on_software_gpu()},
                 {"written_bytes", written_bytes_},
                 {"write_ns", write_ns_},
                 {"arguments", arguments_json()},
                 {"notes", notes_}});
}

// For the report: what the kernel was given.
Json Session::arguments_json() const {
  Json result = Json::array();
  for (const Argument& argument : arguments_) {
    if (argument.member) continue;
    Json row{{"index", argument.index},   {"name", argument.name}, {"type", argument.type},
             {"offset", argument.offset}, {"size", argument.size}, {"value", argument_value(argument)}};
    if (argument.pointer) row["pointer"] = support::hex_string(*argument.pointer);
    result.push_back(std::move(row));
  }
  return result;
}

// As its type says where that is known, otherwise the bytes as one number.
std::string Session::argument_value(const Argument& argument) const {
  if (argument.offset + std::uint64_t{argument.size} > kernarg_.size()) return {};
  const auto bytes = std::span(kernarg_).subspan(argument.offset, argument.size);
  if (argument.pointer) return support::hex_string(*argument.pointer);
  const auto type = element_type(argument.type);
  if (type && *type != ElementType::bytes && size_of(*type) == argument.size) return element_text(*type, bytes.data());
  if (argument.size > 8) return fmt::format("{} bytes", argument.size);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return support::hex_string(value);
}

std::string Session::fault_text(std::uint64_t address) const {
  const snapshot::Region* below = nullptr;
  const snapshot::Region* above = nullptr;
  std::string label;
  for (const snapshot::Region& region : dispatch_.regions) {
    if (region.address <= address) below = &region;
    if (region.address > address && above == nullptr) above = &region;
  }
  const auto name = [&](const snapshot::Region& region) {
    for (const Argument& argument : arguments_) {
      if (argument.pointer && *argument.pointer >= region.address && *argument.pointer - region.address < region.size) {
        return fmt::format("the memory of {}", argument.label());
      }
    }
    return fmt::format("captured memory at {:#x}", region.address);
  };
  constexpr std::uint64_t near = 1u << 30;
  if (below != nullptr && address - below->address < below->size)
    return fmt::format("{:#x}, in {}", address, name(*below));
  if (below != nullptr && address - (below->address + below->size) < near) {
    return fmt::format("{:#x}, {} bytes past the end of {}", address, address - (below->address + below->size),
                       name(*below));
  }
  if (above != nullptr && above->address - address < near) {
    return fmt::format("{:#x}, {} bytes before {}", address, above->address - address, name(*above));
  }
  return fmt::format("{:#x}, far from all captured memory", address);
}

// Arguments that could not lie at the captured address are in no captured region, but a kernel must leave them alone
// too.
void Session::compare_own_kernarg(Comparing& comparing) const {
  if (own_kernarg_.empty()) return;
  Part part;
  part.what = "the kernel's arguments";
  part.type = to_string(ElementType::bytes);
  part.address = launch_.kernarg_address;
  part.size = own_kernarg_.size();
  const auto* actual = reinterpret_cast<const std::byte*>(launch_.kernarg_address);
  compare(ElementType::bytes, {}, own_kernarg_, std::span(actual, own_kernarg_.size()), 0, part.statistics);
  if (part.statistics.outside != 0) {
    comparing.matches = false;
    const Difference& first = *part.statistics.first;
    if (!comparing.first) {
      comparing.first = FirstDifference{part.address + first.offset,
                                        part.address,
                                        "host_kernarg",
                                        -1,
                                        part.what,
                                        first.offset,
                                        part.type,
                                        first.expected,
                                        first.actual};
    }
  }
  comparing.parts.push_back(std::move(part));
}

// Changed inputs are for this run only. False, with an answer sent: there is nothing to change.
bool Session::set_trial(const Json& command) {
  const std::string what = command.value("trial", "");
  if (what.empty()) {
    if (in_trial_) {
      know_what_is_dirty();
      state_->set_trial(std::nullopt);
      fresh_ = true;
      in_trial_ = false;
    }
    return true;
  }
  know_what_is_dirty();
  Trial trial;
  trial.perturbation.seed = command.at("seed").get<std::uint64_t>();
  trial.outcome = command.at("outcome").get<std::string>();
  if (what == "floats") {
    trial.perturbation.stretches = state_->floating_stretches();
  } else {
    for (const Argument& argument : arguments_) {
      if (argument.label() == what) trial.perturbation.stretches = state_->flipped_stretches(argument);
    }
  }
  if (trial.perturbation.stretches.empty()) {
    channel_.send({{"event", "nothing"}});
    return false;
  }
  phase("writing memory with changed inputs");
  state_->set_trial(std::move(trial));
  fresh_ = true;
  in_trial_ = true;
  return true;
}

bool Session::run(const Json& command) {
  const std::string extent = command.at("compare").get<std::string>();
  if (!set_trial(command)) return true;
  if (!fresh_) {
    phase("restoring the captured memory");
    const auto start = std::chrono::steady_clock::now();
    restored_bytes_ = state_->write_dirty();
    restore_ns_ = nanoseconds_since(start);
  }
  Circumstances circumstances;
  circumstances.seed = command.value("seed_of_order", std::uint64_t{0});
  circumstances.poison = command.value("poison", std::uint64_t{0});
  circumstances.counter_clock = command.value("counter_clock", false);
  if (!own_kernarg_.empty())
    std::memcpy(reinterpret_cast<void*>(launch_.kernarg_address), own_kernarg_.data(), own_kernarg_.size());
  if (command.at("cold").get<bool>()) device_->flush_caches();
  fresh_ = false;
  known_ = false;
  phase("running the kernel");
  const std::chrono::milliseconds timeout(command.at("timeout_ms").get<std::int64_t>());
  if (host_calls_) {
    restart_host_calls();
    host_calls_->start();
  }
  set_circumstances(circumstances);
  const LaunchResult result = device_->launch(launch_, timeout);
  set_circumstances({});
  if (host_calls_) host_calls_->stop();
  switch (result.end) {
    case LaunchEnd::fault:
      channel_.send({{"event", "fault"}, {"text", "memory access fault at " + fault_text(result.fault_address)}});
      return false;
    case LaunchEnd::queue_error:
      channel_.send({{"event", "fault"}, {"text", "the GPU stopped the kernel: " + result.reason}});
      return false;
    case LaunchEnd::tampered:
      channel_.send({{"event", "fault"}, {"text", "the kernel wrote to its own completion signal or time stamps"}});
      return false;
    case LaunchEnd::timed_out:
      channel_.send({{"event", "hang"}});
      return false;
    case LaunchEnd::done:
      break;
  }
  Json answer{{"event", "ran"},
              {"device_ns", result.device_ns},
              {"host_ns", result.host_ns},
              {"restored_bytes", restored_bytes_},
              {"restore_ns", restore_ns_}};
  if (host_calls_) {
    answer["printed"] = host_calls_->printed;
    answer["printed_dropped"] = host_calls_->dropped_bytes;
    answer["host_calls_refused"] = host_calls_->refused;
  }
  if (result.clock_hz) answer["clock_hz"] = *result.clock_hz;
  if (extent == "record") {
    phase("recording the outcome");
    state_->write_outcome();
    known_ = true;
    channel_.send(answer);
    return true;
  }
  if (extent != "none") {
    phase("comparing");
    const auto start = std::chrono::steady_clock::now();
    known_ = extent == "everything";
    Noise noise;
    if (command.contains("noise")) noise = command.at("noise").get<Noise>();
    Comparing comparing = state_->compare(extent == "outputs" ? Extent::outputs : Extent::everything, noise);
    compare_own_kernarg(comparing);
    Verdict verdict;
    verdict.outcome = comparing.matches ? Outcome::matches : Outcome::differs;
    verdict.compared_bytes = comparing.bytes;
    verdict.first = std::move(comparing.first);
    verdict.parts = std::move(comparing.parts);
    verdict.skipped = state_->skipped();
    answer["verdict"] = to_json(verdict);
    answer["compare_ns"] = nanoseconds_since(start);
  }
  channel_.send(answer);
  return true;
}

}  // namespace

int run_worker(const Options& options) {
  Channel channel(options.worker_fd);
  try {
    Session session(options, channel);
    session.set_up();
    for (Json command;;) {
      if (channel.receive(command, std::chrono::hours(24 * 365)) != Channel::End::message) break;
      if (command.at("command") == "quit") break;
      if (command.at("command") == "load") {
        session.load(command.at("code_object").get<std::string>());
        continue;
      }
      if (!session.run(command)) break;
    }
    // The runtime's tear-down can wait for a kernel that never ends; nothing here needs it.
    ::_exit(0);
  } catch (const Occupied& occupied) {
    channel.send({{"event", "occupied"}, {"sentence", occupied.sentence}});
  } catch (const support::Error& error) {
    channel.send({{"event", "error"}, {"code", static_cast<int>(error.code())}, {"sentence", error.what()}});
  } catch (const std::exception& error) {
    channel.send({{"event", "error"}, {"code", static_cast<int>(ExitCode::environment)}, {"sentence", error.what()}});
  }
  ::_exit(0);
}

}  // namespace kerncap::replay
