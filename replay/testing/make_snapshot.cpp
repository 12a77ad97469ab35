// A small application and its capture in one program, for the tests of replay: runs the kernel `step` of a code object
// through HSA, with memory of several kinds, and writes the snapshot of its last launch.
//
//   replay_make_snapshot CODE_OBJECT OUT.kcap [--launches N] [--stale] [--large MIB] [--vmem]
//     --launches N   launches before and with the captured one (default 1)
//   replay_make_snapshot --seal OUT.kcap   makes an edited manifest.json whole again
//     --vmem         `in` is allocated by hsa_amd_vmem_* (runtimes from ROCm 6.0 on)
//     --large MIB    so much more device memory, half of it zeros
//     --stale        `state` and `rows` are set back before the captured launch, so that `out` already holds its result
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/snapshot/writer.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/json.h"
#include "replay/code_image.h"
#include "replay/device.h"
#include "replay/memory.h"

namespace {

using namespace kerncap;
using replay::check;
using replay::hsa;
using snapshot::Region;
using snapshot::RegionKind;

constexpr int elements = 5000;
constexpr std::uint64_t page = 4096;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

class Application {
 public:
  Application(const std::string& code_object, std::uint64_t large_mib, bool vmem)
      : large_(large_mib << 20), vmem_(vmem) {
    const std::string text = support::read_text_file(code_object);
    const auto bytes = std::as_bytes(std::span(text));
    elf_.assign(bytes.begin(), bytes.end());
    image_ = replay::read_code_image(elf_, code_object);
    snapshot::Agent agent;
    agent.name = image_.processor;
    manifest_.agents = {agent};
    manifest_.kerncap_version = "test";
    manifest_.runtime_version = "test";
    dispatch_.agent = 0;
    device_ = std::make_unique<replay::Device>(manifest_, dispatch_);
    manifest_.agents[0].isa = device_->dispatch_agent().isa;
    device_->create_queue("multi");
    replay::start_copying(*device_);
    load();
    allocate();
  }

  void run(const char* out, int launches, bool stale) {
    for (int i = 1; i < launches; ++i) launch();
    if (stale) fill_inputs(true);
    dispatch_.kernel_index = dispatch_.index = static_cast<std::uint64_t>(launches - 1);
    snapshot::Writer writer(out, {.replace = true});
    const std::size_t id = writer.begin_dispatch(dispatch_.regions);
    const auto put = [&](snapshot::State state) {
      for (std::size_t i = 0; i < dispatch_.regions.size(); ++i) {
        std::vector<std::byte> bytes(dispatch_.regions[i].size);
        read(dispatch_.regions[i], bytes);
        writer.put(id, i, state, 0, bytes, [] {});
        writer.drain();
      }
    };
    put(snapshot::State::before);
    launch();
    put(snapshot::State::after);
    writer.add_code_object(dispatch_.code_object, elf_);
    writer.set_kernarg(id, std::as_bytes(std::span(static_cast<char*>(kernarg_), kernarg_size_)));
    dispatch_.has_after = true;
    manifest_.dispatches = {dispatch_};
    writer.commit(manifest_);
  }

 private:
  void load() {
    hsa_code_object_reader_t reader{};
    hsa_executable_t executable{};
    hsa_loaded_code_object_t loaded{};
    const auto& api = hsa();
    hsa_agent_t agent = device_->dispatch_agent().handle;
    check(api.hsa_code_object_reader_create_from_memory(elf_.data(), elf_.size(), &reader), "reading");
    check(
        api.hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable),
        "creating");
    check(api.hsa_executable_load_agent_code_object(executable, agent, reader, nullptr, &loaded), "loading");
    check(api.hsa_executable_freeze(executable, nullptr), "freezing");
    snapshot::CodeObjectLoad load;
    load.digest = support::sha256_hex(elf_);
    const auto ask = [&](hsa_ven_amd_loader_loaded_code_object_info_t what, void* value) {
      check(api.loader.hsa_ven_amd_loader_loaded_code_object_get_info(loaded, what, value), "asking the loader");
    };
    ask(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &load.load_base);
    ask(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE, &load.load_size);
    ask(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &load.load_delta);
    dispatch_.loads = {load};
    dispatch_.code_object = load.digest;
    hsa_executable_symbol_t symbol{};
    check(api.hsa_executable_get_symbol_by_name(executable, "step.kd", &agent, &symbol), "finding the kernel");
    check(
        api.hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &dispatch_.kernel_object),
        "asking");
    dispatch_.kernel = *image_.kernel("step.kd");
    dispatch_.kernel_symbol = "step.kd";
    dispatch_.kernel_demangled = "step(float const*, float*, float*, int const*, float**, int)";
    Region region;
    region.address = load.load_base;
    region.size = load.load_size;
    region.kind = RegionKind::code_object;
    region.agent = 0;
    region.code_object = load.digest;
    regions_.push_back(region);
  }

  void* pool_memory(RegionKind kind, std::uint64_t size) {
    size = (size + page - 1) / page * page;  // newer runtimes copy no byte past what was asked for
    replay::Placement like;
    like.kind = kind;
    like.agent = kind == RegionKind::device_coarse ? 0 : -1;
    const replay::Pool& pool = kind == RegionKind::host_kernarg ? device_->kernarg_pool() : device_->pool(like);
    void* memory = nullptr;
    check(hsa().hsa_amd_memory_pool_allocate(pool.handle, size, 0, &memory), "allocating");
    if (like.agent < 0)
      check(hsa().hsa_amd_agents_allow_access(1, &device_->dispatch_agent().handle, nullptr, memory), "allowing");
    Region region;
    region.address = number(memory);
    region.size = size;
    region.kind = kind;
    region.agent = like.agent;
    region.pool_flags = pool.flags;
    regions_.push_back(region);
    return memory;
  }

  void* virtual_memory(std::uint64_t size) {
    const auto& api = hsa();
    if (!api.has_vmem()) support::fail(support::ExitCode::environment, "this runtime has no hsa_amd_vmem_*");
    replay::Placement like;
    like.agent = 0;
    void* memory = nullptr;
    replay::VmemHandle handle{};
    const replay::VmemAccess access{HSA_ACCESS_PERMISSION_RW, device_->dispatch_agent().handle};
    check(api.hsa_amd_vmem_address_reserve(&memory, size, 0, 0), "reserving");
    check(api.hsa_amd_vmem_handle_create(device_->pool(like).handle, size, 0, 0, &handle), "creating");
    check(api.hsa_amd_vmem_map(memory, size, 0, handle, 0), "mapping");
    check(api.hsa_amd_vmem_set_access(memory, size, &access, 1), "allowing");
    Region region;
    region.address = number(memory);
    region.size = size;
    region.kind = RegionKind::vmem;
    region.agent = 0;
    regions_.push_back(region);
    return memory;
  }

  void* registered_memory(std::uint64_t size) {
    void* pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* seen = nullptr;
    hsa_agent_t agent = device_->dispatch_agent().handle;
    check(hsa().hsa_amd_memory_lock(pages, size, &agent, 1, &seen), "registering");
    Region region;
    region.address = number(seen);
    region.size = size;
    region.kind = RegionKind::registered;
    region.host_address = seen == pages ? 0 : number(pages);
    regions_.push_back(region);
    registered_host_ = static_cast<float*>(pages);
    return seen;
  }

  void allocate() {
    in_ = vmem_ ? virtual_memory(4 << 20) : pool_memory(RegionKind::device_coarse, 3 << 20);
    out_ = pool_memory(RegionKind::device_coarse, elements * 4);
    state_ = pool_memory(RegionKind::host_fine, elements * 4);
    index_ = pool_memory(RegionKind::device_coarse, elements * 4);
    row_data_ = registered_memory((elements * 4 + 64 * 4 + page - 1) / page * page);
    rows_ = pool_memory(RegionKind::device_coarse, page);
    kernarg_ = pool_memory(RegionKind::host_kernarg, page);
    if (large_ != 0) {
      std::vector<std::uint32_t> numbers(large_ / 8);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i * 2654435761u >> 7);
      void* memory = pool_memory(RegionKind::device_coarse, large_);
      copy(memory, numbers.data(), numbers.size() * 4);
      check(hsa().hsa_amd_memory_fill(static_cast<char*>(memory) + large_ / 2, 0, large_ / 8), "clearing");
    }
    fill_inputs(false);
    const auto& arguments = dispatch_.kernel.arguments;
    kernarg_size_ = std::max<std::size_t>(dispatch_.kernel.kernarg_size, 44);
    void* const pointers[] = {in_, out_, state_, index_, rows_};
    auto* words = static_cast<char*>(kernarg_);
    std::memset(words, 0, kernarg_size_);
    for (std::size_t i = 0; i < 5; ++i) std::memcpy(words + arguments.at(i).offset, &pointers[i], 8);
    const int n = elements;
    std::memcpy(words + arguments.at(5).offset, &n, 4);
    dispatch_.kernarg_address = number(kernarg_);
    dispatch_.workgroup = {256, 1, 1};
    dispatch_.grid = {(elements + 255) / 256 * 256, 1, 1};
    dispatch_.setup = 1;
    dispatch_.header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                       HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                       HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    dispatch_.group_segment_size = dispatch_.kernel.group_segment_size;
    dispatch_.private_segment_size = dispatch_.kernel.private_segment_size;
    dispatch_.queue_type = "multi";
    std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.address < b.address; });
    dispatch_.regions = regions_;
  }

  void fill_inputs(bool again) {
    std::vector<float> numbers((3 << 20) / 4);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 977) * 0.25f;
    std::vector<int> index(elements);
    for (int i = 0; i < elements; ++i)
      index[static_cast<std::size_t>(i)] = (i * 7919) % static_cast<int>(numbers.size());
    std::vector<std::uint64_t> rows(elements / 64 + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = number(row_data_) + i * 64 * 4;
    const float weights[4] = {0.5f, 1.25f, 2.0f, 3.0f};
    copy(in_, numbers.data(), numbers.size() * 4);
    copy(index_, index.data(), index.size() * 4);
    copy(rows_, rows.data(), rows.size() * 8);
    const auto* variable = image_.find("coefficients");
    if (variable == nullptr) support::fail(support::ExitCode::bad_input, "the code object has no 'coefficients'");
    copy(reinterpret_cast<void*>(variable->address + static_cast<std::uint64_t>(dispatch_.loads[0].load_delta)),
         weights, 16);
    for (int i = 0; i < elements; ++i) {
      static_cast<float*>(state_)[i] = static_cast<float>(i);
      registered_host_[i] = static_cast<float>(i % 100);
    }
    if (again) return;
    std::vector<float> nothing(elements, -1);
    copy(out_, nothing.data(), nothing.size() * 4);
  }

  // Device memory only; by the copy engine, because newer runtimes' hsa_memory_copy knows no virtual-memory
  // allocations.
  void copy(void* to, const void* from, std::size_t size) {
    replay::write_memory(false, number(to), std::span(static_cast<const std::byte*>(from), size));
  }

  void read(const Region& region, std::span<std::byte> bytes) {
    const bool registered = region.kind == RegionKind::registered;
    replay::read_memory(region.agent < 0, registered ? number(registered_host_) : region.address, bytes);
  }

  void launch() {
    replay::Launch what;
    what.header = dispatch_.header;
    what.setup = dispatch_.setup;
    what.grid = dispatch_.grid;
    what.workgroup = dispatch_.workgroup;
    what.kernel_object = dispatch_.kernel_object;
    what.kernarg_address = dispatch_.kernarg_address;
    what.group_segment_size = dispatch_.group_segment_size;
    what.private_segment_size = dispatch_.private_segment_size;
    if (device_->launch(what, std::chrono::seconds(60)).end != replay::LaunchEnd::done) {
      support::fail(support::ExitCode::application_failed, "the kernel did not end well");
    }
  }

  std::vector<std::byte> elf_;
  replay::CodeImage image_;
  snapshot::Manifest manifest_;
  snapshot::Dispatch dispatch_;
  std::unique_ptr<replay::Device> device_;
  std::vector<Region> regions_;
  void *in_ = nullptr, *out_ = nullptr, *state_ = nullptr, *index_ = nullptr, *row_data_ = nullptr, *rows_ = nullptr,
       *kernarg_ = nullptr;
  float* registered_host_ = nullptr;
  std::size_t kernarg_size_ = 0;
  std::uint64_t large_ = 0;
  bool vmem_ = false;
};

// Tests edit manifests on purpose; this gives them the checksum that the reader insists on.
void seal(const std::filesystem::path& snapshot) {
  support::Json document = support::read_json_file(snapshot / "manifest.json");
  document.erase("checksum");
  document["checksum"] = snapshot::manifest_checksum(document);
  support::write_file_atomically(snapshot / "manifest.json", support::dump_json(document));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int launches = 1;
  std::uint64_t large = 0;
  bool stale = false, vmem = false;
  for (int i = 3; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--stale") stale = true;
    if (std::string_view(argv[i]) == "--vmem") vmem = true;
    if (std::string_view(argv[i]) == "--launches" && i + 1 < argc) launches = std::atoi(argv[++i]);
    if (std::string_view(argv[i]) == "--large" && i + 1 < argc) large = std::strtoull(argv[++i], nullptr, 10);
  }
  try {
    if (std::string_view(argv[1]) == "--seal") {
      seal(argv[2]);
      return 0;
    }
    Application(argv[1], large, vmem).run(argv[2], launches, stale);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
