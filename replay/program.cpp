#include "replay/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/support/error.h"
#include "replay/memory.h"
#include "replay/steering.h"

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;

struct Loaded {
  hsa_executable_t executable{};
  hsa_code_object_reader_t reader{};
  std::shared_ptr<std::vector<std::byte>> bytes;
  std::uint64_t base = 0, size = 0;
  std::int64_t delta = 0;
};

constexpr std::uint64_t page = 4096;

// The runtime keeps reading the bytes after loading (the debugger's view), so they live as long as the executable.
Loaded load(std::vector<std::byte> bytes, hsa_agent_t agent, std::optional<Range> wanted, const std::string& what,
            bool is_candidate) {
  const HsaApi& api = hsa();
  Loaded result;
  result.bytes = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  check(api.hsa_code_object_reader_create_from_memory(result.bytes->data(), result.bytes->size(), &result.reader),
        "reading " + what);
  check(api.hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                                      &result.executable),
        "making an executable for " + what);
  hsa_loaded_code_object_t loaded{};
  {
    std::optional<Steer> steer;
    if (wanted) steer.emplace(wanted->address, wanted->size);
    const hsa_status_t status =
        api.hsa_executable_load_agent_code_object(result.executable, agent, result.reader, nullptr, &loaded);
    if (status != HSA_STATUS_SUCCESS) api.hsa_executable_destroy(result.executable);
    if (status == HSA_STATUS_ERROR_INVALID_CODE_OBJECT) {
      fail(is_candidate ? ExitCode::bad_input : ExitCode::environment,
           "the ROCm runtime does not accept {} ({}); it may be older than the compiler that made it", what,
           status_text(status));
    }
    check(status, "loading " + what);
  }
  check(api.hsa_executable_freeze(result.executable, nullptr), "finishing the loading of " + what);
  check(api.loader.hsa_ven_amd_loader_loaded_code_object_get_info(
            loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &result.base),
        "asking where " + what + " lies");
  check(api.loader.hsa_ven_amd_loader_loaded_code_object_get_info(
            loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE, &result.size),
        "asking how large " + what + " is");
  check(api.loader.hsa_ven_amd_loader_loaded_code_object_get_info(
            loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &result.delta),
        "asking how " + what + " was moved");
  return result;
}

std::uint64_t kernel_object(const Loaded& loaded, hsa_agent_t agent, const std::string& symbol_name,
                            const std::string& what) {
  const HsaApi& api = hsa();
  hsa_executable_symbol_t symbol{};
  const hsa_status_t status =
      api.hsa_executable_get_symbol_by_name(loaded.executable, symbol_name.c_str(), &agent, &symbol);
  if (status != HSA_STATUS_SUCCESS) {
    fail(ExitCode::bad_input, "{} has no kernel '{}' that the runtime can find ({})", what, symbol_name,
         status_text(status));
  }
  std::uint64_t object = 0;
  check(api.hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object),
        "asking for the kernel's descriptor");
  return object;
}

std::string descriptor_symbol(const snapshot::Dispatch& dispatch) {
  const std::string& name = dispatch.kernel.symbol.empty() ? dispatch.kernel_symbol : dispatch.kernel.symbol;
  return name.ends_with(".kd") ? name : name + ".kd";
}

// Room for a candidate that begins where the captured code object did: inside its range, or beyond where that is free.
// `ours`: as far as earlier candidates had got.
std::optional<Range> room_at(const Placement& placement, std::uint64_t size, std::uint64_t ours) {
  const std::uint64_t wanted = (size + page - 1) / page * page;
  const std::uint64_t have = std::max(placement.size, ours);
  if (wanted > have && !reserve_range(placement.address + have, wanted - have)) return std::nullopt;
  return Range{placement.address, wanted};
}

const snapshot::CodeObjectLoad& load_of(const snapshot::Dispatch& dispatch, const Placement& placement) {
  return *std::find_if(dispatch.loads.begin(), dispatch.loads.end(), [&](const snapshot::CodeObjectLoad& load) {
    return load.digest == placement.code_object && load.agent == placement.agent &&
           load.load_base >= placement.address && load.load_base - placement.address < placement.size;
  });
}

// Captured memory before the kernel; empty where it was not captured.
std::vector<std::byte> before_bytes(const snapshot::Reader& reader, std::size_t dispatch, std::uint64_t address,
                                    std::uint64_t size) {
  const auto& regions = reader.manifest().dispatches[dispatch].regions;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (address < regions[i].address || address - regions[i].address > regions[i].size ||
        size > regions[i].size - (address - regions[i].address)) {
      continue;
    }
    std::vector<std::byte> result(size);
    reader.read(dispatch, i, snapshot::State::before, address - regions[i].address, result);
    return result;
  }
  return {};
}

void check_candidate(const CodeImage& image, const snapshot::Dispatch& dispatch, const DeviceAgent& agent,
                     const std::string& name) {
  if (!image.processor.empty() && image.processor != agent.name) {
    fail(ExitCode::bad_input, "'{}' is compiled for {}, and the snapshot runs on {}; compile it for {}", name,
         image.processor, agent.name, agent.name);
  }
  if (image.kernel(descriptor_symbol(dispatch)) == nullptr) {
    std::string have;
    for (const codeobject::Kernel& kernel : image.kernels) have += (have.empty() ? "" : ", ") + kernel.name;
    fail(ExitCode::bad_input, "'{}' has no kernel '{}'; it has {}", name, dispatch.kernel_symbol,
         have.empty() ? "none" : have);
  }
}

bool is_own(const Placement& placement, const snapshot::Dispatch& dispatch) {
  return placement.method == Method::code_object && placement.code_object == dispatch.code_object &&
         placement.agent == dispatch.agent;
}

const Placement& own_placement(const Plan& plan, const snapshot::Dispatch& dispatch) {
  const auto found = std::find_if(plan.placements.begin(), plan.placements.end(),
                                  [&](const Placement& placement) { return is_own(placement, dispatch); });
  if (found == plan.placements.end()) {
    fail(ExitCode::bad_input, "the snapshot does not say where the kernel's code object {} was loaded",
         dispatch.code_object.substr(0, 12));
  }
  return *found;
}

Loaded load_captured(const snapshot::Reader& reader, const Device& device, const Placement& placement,
                     const std::string& what) {
  const Loaded loaded = load(reader.code_object(placement.code_object), device.agent(placement.agent).handle,
                             Range{placement.address, placement.size}, what, false);
  if (loaded.base != placement.address) {
    fail(ExitCode::environment,
         "{} cannot be placed as in the application: the runtime put it at {:#x} instead of {:#x}", what, loaded.base,
         placement.address);
  }
  // Never unloaded: the process ends with its replay.
  new std::shared_ptr<std::vector<std::byte>>(loaded.bytes);
  return loaded;
}

std::string code_object_name(const Placement& placement) {
  return fmt::format("code object {}", placement.code_object.substr(0, 12));
}

void load_candidate(Program& program, const snapshot::Reader& reader, std::size_t dispatch_index, const Device& device,
                    const Placement& placement, const std::vector<std::byte>& candidate,
                    const std::string& candidate_name, std::uint64_t ours) {
  const snapshot::Dispatch& dispatch = reader.manifest().dispatches[dispatch_index];
  const CodeImage image = read_code_image(candidate, candidate_name);
  const std::vector<std::byte> captured_bytes = reader.code_object(placement.code_object);
  const CodeImage captured = read_code_image(captured_bytes, "the captured code object");
  check_candidate(image, dispatch, device.dispatch_agent(), candidate_name);
  const std::string what = "'" + candidate_name + "'";
  program.room = room_at(placement, image.memory_size, ours);
  const Loaded loaded = load(candidate, device.agent(placement.agent).handle, program.room, what, true);
  program.executable = loaded.executable;
  program.code_reader = loaded.reader;
  program.bytes = loaded.bytes;
  program.load_base = loaded.base;
  program.load_size = loaded.size;
  program.kernel_object = kernel_object(loaded, device.dispatch_agent().handle, descriptor_symbol(dispatch), what);
  program.kernel = *image.kernel(descriptor_symbol(dispatch));
  // Dynamic LDS and scratch are what the dispatch asked for beyond the kernel's fixed needs.
  const auto rest = [](std::uint32_t asked, std::uint32_t fixed) { return asked > fixed ? asked - fixed : 0; };
  program.group_segment_size =
      program.kernel.group_segment_size + rest(dispatch.group_segment_size, dispatch.kernel.group_segment_size);
  program.private_segment_size =
      program.kernel.private_segment_size + rest(dispatch.private_segment_size, dispatch.kernel.private_segment_size);
  const snapshot::CodeObjectLoad& captured_load = load_of(dispatch, placement);
  const auto captured_delta = static_cast<std::uint64_t>(captured_load.load_delta);
  const auto written_by_host = [&](const ImageSymbol& symbol) {
    const std::vector<std::byte> memory =
        before_bytes(reader, dispatch_index, captured_delta + symbol.address, symbol.size);
    return !memory.empty() && memory != initial_bytes(captured, captured_bytes, symbol.address, symbol.size);
  };
  program.variables = match_variables(captured, captured_delta, image, static_cast<std::uint64_t>(loaded.delta),
                                      written_by_host, program.missing_variables);
  program.pointers = relocate(dispatch, captured, captured_load, image, static_cast<std::uint64_t>(loaded.delta));
  if (!dispatch.code_pointers_complete && (loaded.base != placement.address || !same_layout(captured, image))) {
    fail(ExitCode::bad_input,
         "'{}' has another layout than the captured code object, and the snapshot's list of pointers into it is "
         "incomplete: they cannot all be relocated, so the candidate cannot be judged on this snapshot",
         candidate_name);
  }
  for (const std::string& name : program.missing_variables) {
    program.notes.push_back(
        fmt::format("device variable '{}' of the captured code object is not in the candidate", name));
  }
  if (!program.pointers.empty()) {
    program.notes.push_back(fmt::format("{} pointer{} into the code object {} relocated", program.pointers.size(),
                                        program.pointers.size() == 1 ? "" : "s",
                                        program.pointers.size() == 1 ? "was" : "were"));
  }
}

}  // namespace

Program load_surroundings(const snapshot::Reader& reader, std::size_t dispatch_index, const Device& device,
                          const Plan& plan) {
  const snapshot::Dispatch& dispatch = reader.manifest().dispatches[dispatch_index];
  const Placement& own = own_placement(plan, dispatch);
  Program program;
  program.kernel = dispatch.kernel;
  program.private_segment_size = dispatch.private_segment_size;
  program.group_segment_size = dispatch.group_segment_size;
  program.candidate = true;
  for (const Placement& placement : plan.placements) {
    if (placement.method == Method::code_object && &placement != &own)
      load_captured(reader, device, placement, code_object_name(placement));
  }
  return program;
}

Program load_program(const snapshot::Reader& reader, std::size_t dispatch_index, const Device& device, const Plan& plan,
                     const std::optional<std::vector<std::byte>>& candidate, const std::string& candidate_name) {
  const snapshot::Dispatch& dispatch = reader.manifest().dispatches[dispatch_index];
  Program program = load_surroundings(reader, dispatch_index, device, plan);
  const Placement& own = own_placement(plan, dispatch);
  if (candidate) {
    load_candidate(program, reader, dispatch_index, device, own, *candidate, candidate_name, 0);
    return program;
  }
  program.candidate = false;
  const std::string what = code_object_name(own);
  const Loaded loaded = load_captured(reader, device, own, what);
  program.kernel_object = kernel_object(loaded, device.dispatch_agent().handle, descriptor_symbol(dispatch), what);
  if (program.kernel_object != dispatch.kernel_object) {
    fail(ExitCode::bad_input,
         "the kernel's descriptor is at {:#x}, in the application it was at {:#x}: the snapshot contradicts its own "
         "code object",
         program.kernel_object, dispatch.kernel_object);
  }
  return program;
}

void replace_candidate(Program& program, const snapshot::Reader& reader, std::size_t dispatch_index,
                       const Device& device, const Plan& plan, const std::vector<std::byte>& candidate,
                       const std::string& candidate_name) {
  const snapshot::Dispatch& dispatch = reader.manifest().dispatches[dispatch_index];
  const Placement& own = own_placement(plan, dispatch);
  std::uint64_t ours = 0;
  if (program.executable.handle != 0) {
    check(hsa().hsa_executable_destroy(program.executable), "unloading the last candidate");
    hsa().hsa_code_object_reader_destroy(program.code_reader);
  }
  if (program.room) {
    // The runtime has given the range back; nobody else may have it.
    ours = std::max(own.size, program.room->size);
    reserve_range(own.address, ours);
  }
  const std::optional<Range> room = program.room;
  program = Program{};
  program.candidate = true;
  program.kernel = dispatch.kernel;
  program.room = room;
  load_candidate(program, reader, dispatch_index, device, own, candidate, candidate_name, ours);
}

}  // namespace kerncap::replay
