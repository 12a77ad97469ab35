#include "softgpu/isa/test_gpu.h"

#include <elf.h>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

extern "C" kerncap::softgpu::InstructionSet* kerncap_softgpu_isa(unsigned version, const char* processor,
                                                                 const char** error);

namespace kerncap::softgpu::isa {
namespace {

std::uint64_t round_up(std::uint64_t value) {
  return (value + AddressSpace::page_size - 1) & ~(AddressSpace::page_size - 1);
}

}  // namespace

TestGpu::TestGpu(const std::string& processor) {
  const char* error = nullptr;
  isa_.reset(kerncap_softgpu_isa(isa_interface_version, processor.c_str(), &error));
  if (isa_ == nullptr) throw std::runtime_error(error);
}

TestGpu::~TestGpu() {
  isa_.reset();
  for (void* block : blocks_) std::free(block);
}

std::uint64_t TestGpu::allocate(std::uint64_t bytes, unsigned permissions) {
  const std::uint64_t size = round_up(std::max<std::uint64_t>(bytes, 1));
  void* block = std::aligned_alloc(AddressSpace::page_size, size);
  std::memset(block, 0, size);
  blocks_.push_back(block);
  const std::uint64_t address = next_address_;
  next_address_ += size + AddressSpace::page_size;  // a gap that faults
  memory_.map(address, size, static_cast<std::byte*>(block), permissions);
  return address;
}

void TestGpu::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  load(std::vector<char>(std::istreambuf_iterator<char>(file), {}));
}

void TestGpu::load(const std::vector<char>& image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  std::uint64_t end = 0;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  std::memcpy(segments.data(), image.data() + header.e_phoff, segments.size() * sizeof(Elf64_Phdr));
  for (const auto& segment : segments)
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_vaddr + segment.p_memsz);
  const std::uint64_t base = allocate(end, permission_read | permission_write | permission_execute);
  for (const auto& segment : segments)
    if (segment.p_type == PT_LOAD)
      std::memcpy(host<char>(base) + segment.p_vaddr, image.data() + segment.p_offset, segment.p_filesz);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), image.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    const char* names = image.data() + sections[section.sh_link].sh_offset;
    for (std::uint64_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, image.data() + section.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx != SHN_UNDEF) symbols_[names + symbol.st_name] = base + symbol.st_value;
    }
  }
  isa_->invalidate_code(base, end);
}

std::uint64_t TestGpu::symbol(const std::string& name) const {
  const auto found = symbols_.find(name);
  if (found == symbols_.end()) throw std::runtime_error("no symbol " + name);
  return found->second;
}

DispatchError TestGpu::run(const std::string& kernel, Launch launch) {
  DispatchRequest request;
  auto& packet = request.packet;
  packet.setup = 3;
  packet.grid_size_x = launch.grid[0];
  packet.grid_size_y = launch.grid[1];
  packet.grid_size_z = launch.grid[2];
  packet.workgroup_size_x = static_cast<std::uint16_t>(launch.group[0]);
  packet.workgroup_size_y = static_cast<std::uint16_t>(launch.group[1]);
  packet.workgroup_size_z = static_cast<std::uint16_t>(launch.group[2]);
  packet.kernel_object = symbol(kernel + ".kd");
  packet.private_segment_size = launch.private_bytes;
  packet.group_segment_size = launch.group_bytes;
  // The hidden arguments of code object 5 (AMDGPUUsage): block counts, group sizes, remainders; enough for HIP kernels.
  std::vector<std::byte> arguments = launch.arguments;
  while (arguments.size() % 8) arguments.push_back(std::byte{0});
  const std::size_t hidden = arguments.size();
  arguments.resize(hidden + 256);
  for (unsigned k = 0; k < 3; ++k) {
    const std::uint32_t count = launch.grid[k] / launch.group[k];
    const auto size = static_cast<std::uint16_t>(launch.group[k]),
               rest = static_cast<std::uint16_t>(launch.grid[k] % launch.group[k]);
    std::memcpy(&arguments[hidden + 4 * k], &count, 4);
    std::memcpy(&arguments[hidden + 12 + 2 * k], &size, 2);
    std::memcpy(&arguments[hidden + 18 + 2 * k], &rest, 2);
  }
  const std::uint64_t kernarg = upload(arguments);
  packet.kernarg_address = reinterpret_cast<void*>(kernarg);
  std::vector<hsa_kernel_dispatch_packet_t> copy{packet};
  request.packet_address = upload(copy);
  request.queue_address = allocate(4096);
  request.memory = &memory_;
  request.host = this;
  request.seed = launch.seed;
  const auto dispatch = isa_->start(request);
  const auto work = [&] {
    for (;;) {
      const DispatchStatus status = dispatch->advance(1000000);
      if (status == DispatchStatus::idle)
        std::this_thread::yield();
      else if (status != DispatchStatus::running)
        return;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned k = 1; k < launch.threads; ++k) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  counters_ = dispatch->counters();
  return dispatch->error();
}

}  // namespace kerncap::softgpu::isa
