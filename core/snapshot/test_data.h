// What the tests of this folder share: small regions and bytes to put in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/snapshot/manifest.h"

namespace kerncap::snapshot::testing {

inline std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(generator());
  return bytes;
}

inline std::vector<std::byte> text_like_bytes(std::size_t size, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>('a' + generator() % 3);
  return bytes;
}

inline Region region(std::uint64_t address, std::uint64_t size) {
  Region r;
  r.address = address;
  r.size = size;
  r.agent = 0;
  return r;
}

inline Manifest small_manifest(std::vector<Region> regions) {
  Manifest m;
  m.kerncap_version = "0";
  m.runtime_version = "1.1";
  m.agents.emplace_back();
  m.agents[0].name = "gfx90a";
  Dispatch d;
  d.kernel_symbol = "_Z3addPfS_i.kd";
  d.kernel_demangled = "add(float*, float*, int)";
  d.code_object = std::string(64, 'a');
  d.queue_type = "multi";
  d.grid = {256, 1, 1};
  d.workgroup = {64, 1, 1};
  d.kernel.name = "_Z3addPfS_i";
  d.regions = std::move(regions);
  d.has_after = true;
  m.dispatches.push_back(std::move(d));
  return m;
}

}  // namespace kerncap::snapshot::testing
