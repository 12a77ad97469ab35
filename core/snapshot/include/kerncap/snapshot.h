// Reading Kerncap's snapshots from any C++ program.
//
//   find_package(Kerncap REQUIRED COMPONENTS Snapshot)
//   target_link_libraries(app PRIVATE Kerncap::snapshot)
//
//   kerncap::Snapshot snapshot("step.kcap");
//   for (const auto& region : snapshot.dispatch(0).regions) ...
//   snapshot.read(0, 0, kerncap::Snapshot::State::before, 0, buffer, size);
//
// Stable: what is declared here stays source compatible within a major version of Kerncap, and binary compatible within
// the library's SONAME. Nothing but the standard library is included. Snapshots of every earlier version of the format
// are read; newer ones are refused with a sentence that says so.
//
// Units: addresses are device virtual addresses as the application saw them, sizes and offsets bytes, times
// nanoseconds; grid and workgroup are work-items. Memory is cut into chunks of 64 KiB, counted from a region's first
// byte. Ownership: a Snapshot keeps its files open and owns everything that it returns a reference to, until it is
// destroyed or moved from. Everything else is returned by value or written into the caller's memory. Errors:
// SnapshotError, and std::bad_alloc. A snapshot is taken to be hostile: every size and offset is checked when it is
// opened, every checksum when bytes are read. After an error the object can still be used.
// Thread-safety: const members may be called from several threads at once on one object.
// Cost: opening reads the manifest and the tables (about 8 bytes for each chunk), never a chunk; memory held is the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define KERNCAP_SNAPSHOT_API __attribute__((visibility("default")))

namespace kerncap {

class KERNCAP_SNAPSHOT_API SnapshotError : public std::runtime_error {
 public:
  enum class Kind {
    damaged,      // not a snapshot, of a newer format, or its bytes are not what they were
    wrong_use,    // an index, range or digest that the snapshot does not have
    environment,  // not enough memory or file descriptors
  };
  SnapshotError(Kind kind, const std::string& sentence);
  ~SnapshotError() override;
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

class KERNCAP_SNAPSHOT_API Snapshot {
 public:
  enum class State { before, after };  // the kernel

  struct Agent {  // a GPU
    std::string name, isa, product;
    std::uint32_t compute_units = 0, wavefront_size = 0;
    std::uint64_t memory_bytes = 0;
  };

  struct Region {
    std::uint64_t address = 0, size = 0;
    std::string kind;              // "device_coarse", "registered", ...: docs/formats/snapshot.md
    std::int32_t agent = -1;       // position in agents(); -1: the host
    std::uint32_t pool_flags = 0;  // HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*
  };

  struct Argument {
    std::string name, type_name, value_kind;  // from the code object's metadata; names may be empty
    std::uint32_t offset = 0, size = 0;       // in the kernarg segment
  };

  struct NotCaptured {
    std::uint64_t address = 0, size = 0;  // both 0: not one range
    std::string kind, reason;
  };

  struct Dispatch {
    std::string kernel_symbol, kernel_name;  // "_Z5scalePfif.kd", "scale(float*, int, float)"
    std::string code_object;                 // SHA-256 of the file that holds the kernel
    std::uint32_t grid[3] = {}, workgroup[3] = {};
    std::uint32_t private_segment_size = 0, group_segment_size = 0;
    std::uint64_t kernel_object = 0, kernarg_address = 0;
    std::int32_t agent = 0;                     // position in agents()
    std::uint64_t index = 0, kernel_index = 0;  // among all dispatches of the process, among the kernel's; from 0
    std::int64_t device_time = -1;              // -1: not measured
    bool has_after = false;                     // false: no state after the kernel, `incomplete_reason` says why
    std::string incomplete_reason;
    bool reachable_only = false;      // --scope reachable: not all of `visible_bytes` is in `regions`
    std::uint64_t visible_bytes = 0;  // of all memory that the device could reach
    std::vector<Argument> arguments;
    std::vector<Region> regions;  // ascending addresses, disjoint
    std::vector<NotCaptured> not_captured;
    std::vector<std::string> code_objects;  // digests of every code object in the snapshot that was loaded then
  };

  static constexpr std::uint64_t chunk_size = 65536;

  explicit Snapshot(const std::string& folder);
  ~Snapshot();
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;

  const std::vector<Agent>& agents() const;
  std::size_t dispatch_count() const;
  const Dispatch& dispatch(std::size_t number) const;

  // Bytes [offset, offset + size) of a region. State::after needs has_after.
  void read(std::size_t dispatch, std::size_t region, State state, std::uint64_t offset, void* to,
            std::size_t size) const;
  // The same by address; the range must lie in one region.
  void read_address(std::size_t dispatch, State state, std::uint64_t address, void* to, std::size_t size) const;

  // Did the kernel change this chunk; is it all zero? Nothing is read for the answer.
  bool changed(std::size_t dispatch, std::size_t region, std::uint64_t chunk) const;
  bool is_zero(std::size_t dispatch, std::size_t region, State state, std::uint64_t chunk) const;

  std::vector<std::byte> kernarg(std::size_t dispatch) const;           // the segment as it was dispatched
  std::vector<std::byte> code_object(const std::string& digest) const;  // the ELF file

  std::vector<std::string> verify() const;  // reads everything; a sentence for each damage, none when whole

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace kerncap
