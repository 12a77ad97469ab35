#include "softgpu/topology.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "softgpu/execution.h"

namespace kerncap::softgpu {
namespace {

constexpr const char* kfd_root = "/sys/devices/virtual/kfd/kfd/topology";
constexpr const char* pci_root = "/sys/devices/kerncap-softgpu/";

// enum kfd_ioctl_* have no names for these; they are those of <hsakmt/hsakmttypes.h>.
enum HeapType { heap_system = 0, heap_frame_buffer_public = 1, heap_frame_buffer_private = 2 };
enum CacheType { cache_data = 1, cache_cpu = 4, cache_gpu = 8 };
constexpr unsigned link_pcie = 2;

// Bits of a node's "capability", HSA_CAPABILITY in <hsakmt/hsakmttypes.h>.
enum Capability : std::uint32_t {
  capability_watch_points = 1u << 7,
  capability_watch_points_log2 = 2u << 8,  // 2^2 watch points
  capability_doorbell_type_2 = 2u << 12,   // AQL doorbells: the value is a packet index
  capability_debug_trap = 1u << 15,        // needed for the exception path of queues
  capability_wave_launch_trap_override = 1u << 16,
  capability_wave_launch_mode = 1u << 17,
  capability_asic_revision_shift = 22,
  capability_sram_ecc = 1u << 26,
  capability_shared_virtual_memory = 1u << 27,
  capability_debug_firmware = 1u << 29,  // likewise
};

struct Properties {
  std::string text;
  void add(const char* name, std::uint64_t value) {
    char line[128];
    std::snprintf(line, sizeof line, "%s %llu\n", name, static_cast<unsigned long long>(value));
    text += line;
  }
};

std::string path_of(const char* format, ...) {
  char path[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(path, sizeof path, format, arguments);
  va_end(arguments);
  return path;
}

std::uint64_t system_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return std::uint64_t{8} << 30;
  return (static_cast<std::uint64_t>(info.totalram) * info.mem_unit) & ~std::uint64_t{0xfff};
}

void add_memory_bank(VirtualTree& tree, unsigned node, unsigned heap, std::uint64_t size, unsigned width,
                     unsigned clock) {
  Properties bank;
  bank.add("heap_type", heap);
  bank.add("size_in_bytes", size);
  bank.add("flags", 0);
  bank.add("width", width);
  bank.add("mem_clk_max", clock);
  tree.add_text(path_of("%s/nodes/%u/mem_banks/0/properties", kfd_root, node), bank.text);
}

void add_cache(VirtualTree& tree, unsigned node, unsigned index, std::uint64_t processor, unsigned level, unsigned kib,
               unsigned type) {
  Properties cache;
  cache.add("processor_id_low", processor);
  cache.add("level", level);
  cache.add("size", kib);
  cache.add("cache_line_size", 64);
  cache.add("cache_lines_per_tag", 1);
  cache.add("association", 16);
  cache.add("latency", 0);
  cache.add("type", type);
  cache.text += "sibling_map 1\n";
  tree.add_text(path_of("%s/nodes/%u/caches/%u/properties", kfd_root, node, index), cache.text);
}

void add_link(VirtualTree& tree, const char* folder, unsigned from, unsigned index, unsigned to, unsigned weight) {
  Properties link;
  link.add("type", link_pcie);
  link.add("version_major", 0);
  link.add("version_minor", 0);
  link.add("node_from", from);
  link.add("node_to", to);
  link.add("weight", weight);
  link.add("min_latency", 0);
  link.add("max_latency", 0);
  link.add("min_bandwidth", 312);
  link.add("max_bandwidth", 31504);
  link.add("recommended_transfer_size", 0);
  link.add("recommended_sdma_engine_id_mask", 0);
  link.add("flags", 1);  // enabled, without the override bit: 64-bit atomics work
  tree.add_text(path_of("%s/nodes/%u/%s/%u/properties", kfd_root, from, folder, index), link.text);
}

void add_cpu_node(VirtualTree& tree, const Configuration& configuration) {
  const unsigned gpus = static_cast<unsigned>(configuration.devices.size());
  const unsigned links = configuration.large_bar ? gpus : 0;  // a CPU reaches device memory only through a large BAR
  Properties node;
  node.add("cpu_cores_count", static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
  node.add("simd_count", 0);
  node.add("mem_banks_count", 1);
  node.add("caches_count",
           2);  // without this libhsakmt reads the CPU's own cache files, which many virtual machines lack
  node.add("io_links_count", links);
  node.add("p2p_links_count", 0);
  for (const char* name : {"cpu_core_id_base",
                           "simd_id_base",
                           "max_waves_per_simd",
                           "lds_size_in_kb",
                           "gds_size_in_kb",
                           "num_gws",
                           "wave_front_size",
                           "array_count",
                           "simd_arrays_per_engine",
                           "cu_per_simd_array",
                           "simd_per_cu",
                           "max_slots_scratch_cu",
                           "gfx_target_version",
                           "vendor_id",
                           "device_id",
                           "location_id",
                           "domain",
                           "drm_render_minor",
                           "hive_id",
                           "num_sdma_engines",
                           "num_sdma_xgmi_engines",
                           "num_sdma_queues_per_engine",
                           "num_cp_queues"}) {
    node.add(name, 0);
  }
  node.add("max_engine_clk_ccompute", 3000);
  tree.add_text(path_of("%s/nodes/0/gpu_id", kfd_root), "0\n");
  tree.add_text(path_of("%s/nodes/0/name", kfd_root), "\n");
  tree.add_text(path_of("%s/nodes/0/properties", kfd_root), node.text);
  add_memory_bank(tree, 0, heap_system, system_memory(), 64, 3200);
  add_cache(tree, 0, 0, 0, 1, 32, cache_data | cache_cpu);
  add_cache(tree, 0, 1, 0, 2, 1024, cache_data | cache_cpu);
  for (const char* folder : {"io_links", "p2p_links"}) tree.add_folder(path_of("%s/nodes/0/%s", kfd_root, folder));
  for (unsigned gpu = 0; gpu < links; ++gpu) add_link(tree, "io_links", 0, gpu, gpu + 1, 20);
}

void add_gpu_node(VirtualTree& tree, const Configuration& configuration, unsigned index) {
  const Architecture& gpu = *configuration.devices[index];
  const unsigned node = index + 1;
  const unsigned peers = static_cast<unsigned>(configuration.devices.size()) - 1;
  const std::uint32_t arrays = gpu.shader_engines * gpu.arrays_per_engine;
  const std::uint32_t simd_id_base = 0x80000000u + 0x1000u * node;

  std::uint32_t capability = capability_watch_points | capability_watch_points_log2 | capability_doorbell_type_2 |
                             capability_debug_trap | capability_wave_launch_trap_override |
                             capability_wave_launch_mode | (gpu.asic_revision << capability_asic_revision_shift) |
                             capability_debug_firmware;
  if (gpu.sram_ecc) capability |= capability_sram_ecc;
  if (configuration.shared_virtual_memory) capability |= capability_shared_virtual_memory;

  Properties properties;
  properties.add("cpu_cores_count", 0);
  properties.add("simd_count", gpu.compute_units * gpu.simd_per_cu);
  properties.add("mem_banks_count", 1);
  properties.add("caches_count", 2);
  properties.add("io_links_count", 1);
  properties.add("p2p_links_count", peers);
  properties.add("cpu_core_id_base", 0);
  properties.add("simd_id_base", simd_id_base);
  properties.add("max_waves_per_simd", gpu.waves_per_simd);
  properties.add("lds_size_in_kb", 64);
  properties.add("gds_size_in_kb", 0);
  properties.add("num_gws", 64);
  properties.add("wave_front_size", gpu.wave_size);
  properties.add("array_count", arrays);
  properties.add("simd_arrays_per_engine", gpu.arrays_per_engine);
  properties.add("cu_per_simd_array", (gpu.compute_units + arrays - 1) / arrays);
  properties.add("simd_per_cu", gpu.simd_per_cu);
  properties.add("max_slots_scratch_cu", gpu.scratch_slots_per_cu);
  properties.add("gfx_target_version", gpu.gfx_target_version);
  properties.add("vendor_id", 0x1002);
  properties.add("device_id", gpu.device_id);
  properties.add("location_id", (0x20u + index) << 8);  // PCI bus 0x20 + index, device 0, function 0
  properties.add("domain", 0);
  properties.add("drm_render_minor", first_render_minor + index);
  properties.add("hive_id", 0);
  properties.add("num_sdma_engines", gpu.sdma_engines);
  properties.add("num_sdma_xgmi_engines", gpu.xgmi_sdma_engines);
  properties.add("num_sdma_queues_per_engine", gpu.sdma_queues_per_engine);
  properties.add("num_cp_queues", 24);
  properties.add("max_engine_clk_fcompute", gpu.engine_clock);
  properties.add("local_mem_size", 0);
  properties.add("fw_version", 69);
  properties.add("capability", capability);
  properties.add("debug_prop", 1494);
  properties.add("sdma_fw_version", 8);
  properties.add("unique_id", 0x6b636170'00000000u + index);
  properties.add("num_xcc", gpu.xccs);
  properties.add("max_engine_clk_ccompute", 3000);

  tree.add_text(path_of("%s/nodes/%u/gpu_id", kfd_root, node), std::to_string(gpu_id_of(index)) + "\n");
  tree.add_text(path_of("%s/nodes/%u/name", kfd_root, node), std::string(gpu.processor) + "\n");
  tree.add_text(path_of("%s/nodes/%u/properties", kfd_root, node), properties.text);
  add_memory_bank(tree, node, configuration.large_bar ? heap_frame_buffer_public : heap_frame_buffer_private,
                  configuration.vram, gpu.memory_bus_width, gpu.memory_clock);
  add_cache(tree, node, 0, simd_id_base, 1, gpu.l1_kib, cache_data | cache_gpu);
  add_cache(tree, node, 1, simd_id_base, 2, gpu.l2_kib, cache_data | cache_gpu);
  add_link(tree, "io_links", node, 0, 0, 20);
  tree.add_folder(path_of("%s/nodes/%u/p2p_links", kfd_root, node));
  for (unsigned peer = 0, link = 0; peer <= peers; ++peer) {
    if (peer != index) add_link(tree, "p2p_links", node, link++, peer + 1, 40);
  }
}

// What libdrm, rocm-smi and libamdhip64 look up about the PCI device behind a DRM node.
void add_drm_nodes(VirtualTree& tree, const Configuration& configuration, unsigned index) {
  const Architecture& gpu = *configuration.devices[index];
  const unsigned render = first_render_minor + index;
  const std::string slot = path_of("0000:%02x:00.0", 0x20u + index);
  const std::string device = std::string(pci_root) + slot;
  const auto text = [&](const char* name, const std::string& content) {
    tree.add_text(device + "/" + name, content + "\n");
  };

  tree.add_drm_device(path_of("/dev/dri/renderD%u", render), render);
  tree.add_drm_device(path_of("/dev/dri/card%u", index), index);
  text("vendor", "0x1002");
  text("device", path_of("0x%04x", gpu.device_id));
  text("subsystem_vendor", "0x1002");
  text("subsystem_device", "0x0c34");
  text("revision", path_of("0x%02x", gpu.revision));
  text("class", "0x038000");
  text("uevent", path_of("DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:%04X\nPCI_SUBSYS_ID=1002:0C34\nPCI_SLOT_NAME=%s",
                         gpu.device_id, slot.c_str()));
  text("unique_id", path_of("%016llx", 0x6b636170'00000000ull + index));
  text("product_name", gpu.marketing_name);
  text("vbios_version", "KERNCAP-SOFTGPU");  // rocm-smi takes a device without one for no AMD GPU
  text("mem_info_vram_total", std::to_string(configuration.vram));
  text("mem_info_vis_vram_total", std::to_string(configuration.large_bar ? configuration.vram : 0));
  text("mem_info_gtt_total", std::to_string(configuration.vram));
  for (const char* idle :
       {"mem_info_vram_used", "mem_info_vis_vram_used", "mem_info_gtt_used", "gpu_busy_percent", "mem_busy_percent"}) {
    text(idle, "0");
  }
  // Sensors that never change: rocm-smi 5.2 stops when there is none.
  for (const auto& [name, content] :
       {std::pair{"name", "amdgpu"}, std::pair{"temp1_input", "30000"}, std::pair{"temp1_label", "edge"},
        std::pair{"in0_label", "vddgfx"}, std::pair{"in0_input", "750"}, std::pair{"power1_average", "0"},
        std::pair{"power1_cap", "300000000"}}) {
    text((std::string("hwmon/hwmon0/") + name).c_str(), content);
  }
  tree.add_link(device + "/subsystem", "/sys/bus/pci");
  tree.add_link(device + "/driver", "/sys/bus/pci/drivers/amdgpu");

  const auto add_node = [&](const std::string& name, unsigned minor) {
    const std::string node = device + "/drm/" + name;
    tree.add_text(node + "/dev", path_of("226:%u\n", minor));
    tree.add_link(node + "/device", device);
    tree.add_link("/sys/class/drm/" + name, node);
    tree.add_link(path_of("/sys/dev/char/226:%u", minor), node);
  };
  add_node(path_of("card%u", index), index);
  add_node(path_of("renderD%u", render), render);
}

}  // namespace

std::uint32_t gpu_id_of(unsigned index) { return 0x4b00 + 0x11 * (index + 1); }

VirtualTree build_topology(const Configuration& configuration) {
  VirtualTree tree;
  if (configuration.devices.empty()) return tree;
  tree.add_kfd_device("/dev/kfd");
  tree.add_text("/sys/class/kfd/kfd/dev", "511:0\n");
  tree.add_link("/sys/class/kfd/kfd/topology", kfd_root);
  tree.add_text(path_of("%s/generation_id", kfd_root), "2\n");
  tree.add_text(path_of("%s/system_properties", kfd_root), "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
  tree.add_text("/sys/module/amdgpu/initstate", "live\n");
  tree.add_text("/sys/module/amdgpu/version", "6.8.5\n");
  tree.add_folder("/sys/module/amdgpu/holders");
  tree.add_text("/proc/modules", "amdgpu 9920512 1 - Live 0x0000000000000000\n");
  add_cpu_node(tree, configuration);
  for (unsigned index = 0; index < configuration.devices.size(); ++index) {
    add_gpu_node(tree, configuration, index);
    add_drm_nodes(tree, configuration, index);
  }
  return tree;
}

}  // namespace kerncap::softgpu
