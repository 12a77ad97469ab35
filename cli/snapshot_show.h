// A snapshot for people and for scripts: what `kerncap inspect` shows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/snapshot/difference.h"
#include "core/snapshot/reader.h"
#include "core/support/json.h"

namespace kerncap::cli {

// One argument of the kernel as it was dispatched, hidden ones included.
struct ShownArgument {
  std::uint32_t offset = 0, size = 0;  // bytes of the kernarg segment
  std::string kind, name, type;  // kind and name from the code object's metadata, type also from the kernel's name
  std::string value;             // by type where it is known: "3", "0.5"; else hexadecimal
  std::string points_into;       // of a pointer: "device_coarse 0x7f.. + 0x40"
};
std::vector<ShownArgument> decode_kernarg(const snapshot::Dispatch& dispatch, const std::vector<std::byte>& kernarg);

// "gfx90a#0" | "host".
std::string agent_name(const snapshot::Manifest& manifest, std::int32_t agent);

// Memory is read only where chunks changed.
std::string describe(const snapshot::Reader& reader, std::size_t dispatch, const snapshot::ReadProgress& progress);
support::Json as_json(const snapshot::Reader& reader, const snapshot::ReadProgress& progress);

// The differences between two dispatches.
std::string describe(const snapshot::Difference& difference, const snapshot::Reader& first, std::size_t dispatch_first,
                     const snapshot::Reader& second, std::size_t dispatch_second);
support::Json as_json(const snapshot::Difference& difference, const snapshot::Reader& first, std::size_t dispatch_first,
                      const snapshot::Reader& second, std::size_t dispatch_second);

}  // namespace kerncap::cli
