// Every code object and kernel that is loaded at this moment, and every kernel that ever was.
//
// Thread-safety: all members may be called in parallel. Pointers that come out stay valid for the life of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/runtime_table.h"

namespace kerncap::capture {

// One kernel by its symbol; the same function loaded for several agents or from several code objects is one record.
struct KernelRecord {
  std::string symbol, demangled;  // "_Z3addPfS_i.kd"; demangled is empty until somebody needed it
  bool matches = false;           // the pattern
  std::atomic<std::uint64_t> dispatches{0};
  std::atomic<std::uint64_t> wanted{0};    // of them, those of wanted objects
  std::atomic<std::uint64_t> selected{0};  // of these, those that the session's selection accepts: DispatchList counts
  std::uint32_t number = 0;                // position in records()
};

// One loaded instance of it.
struct KernelObject {
  KernelRecord* record = nullptr;
  std::uint64_t kernel_object = 0;  // what the dispatch packet names
  std::uint64_t agent = 0, executable = 0;
  bool wanted = false;                             // matches the pattern and lies in the wanted code object
  std::atomic<std::uint64_t>* launches = nullptr;  // of this instance; the registry's, never null
  std::uint32_t kernarg_size = 0, group_segment_size = 0, private_segment_size = 0;
};

struct LoadedCode {
  std::uint64_t executable = 0, agent = 0;
  std::uint64_t base = 0, size = 0;
  std::int64_t delta = 0;
  // Where the code object's file lies: memory of the application, or a file descriptor of ours.
  std::uint64_t memory = 0, memory_size = 0;
  std::shared_ptr<const int> file;  // closes itself
  std::uint64_t file_offset = 0, file_size = 0;
  std::shared_ptr<const std::vector<std::byte>> kept;  // a copy: the application gave the memory back
  std::string digest;                                  // empty until it was needed
};

class CodeRegistry {
 public:
  // Fills in `demangled` and `matches` of a new record; called under the registry's lock, once for each symbol, outside
  // of any packet callback. Exceptions end in failure().
  using Namer = std::function<void(KernelRecord&)>;
  // `code_object`: kernels are wanted only in code objects whose digest begins so.
  CodeRegistry(Namer namer, std::string code_object) : namer_(std::move(namer)), code_object_(std::move(code_object)) {}

  void loaded(hsa_executable_t executable);     // after hsa_executable_freeze
  void unloading(hsa_executable_t executable);  // before hsa_executable_destroy
  void forget_loaded();                         // the runtime was shut down
  void memory_reader(hsa_code_object_reader_t reader, const void* bytes);
  void reader_gone(hsa_code_object_reader_t reader);  // before its destruction

  const KernelObject* find(std::uint64_t kernel_object) const;
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }  // changes when kernels go

  std::vector<LoadedCode> loads() const;
  std::vector<const KernelRecord*> records() const;
  // The wanted kernels behind one symbol that were launched, one for each code object. The digest is empty when there
  // is only one, or when the application unloaded it before anybody asked.
  struct Launched {
    std::string digest;
    std::uint64_t dispatches = 0;
  };
  std::vector<Launched> launched(const KernelRecord& record);
  std::string failure() const;

  // The code object's bytes and SHA-256; throws support::Error when the application took the bytes away.
  std::vector<std::byte> bytes(const LoadedCode& load) const;
  std::string digest(const LoadedCode& load);  // remembered

 private:
  KernelRecord& record(const std::string& symbol);
  void add_symbols(hsa_executable_t executable, hsa_agent_t agent);

  bool in_wanted_code(std::uint64_t kernel_object);
  std::string launched_digest(const KernelObject& object);  // empty when the code is gone

  const Namer namer_;
  const std::string code_object_;
  mutable std::mutex mutex_;  // everything below
  std::atomic<std::uint64_t> generation_{1};
  std::deque<KernelRecord> records_;
  std::unordered_map<std::string, KernelRecord*> by_symbol_;
  std::deque<KernelObject> objects_;  // never shrinks: callbacks hold pointers
  std::deque<std::atomic<std::uint64_t>> launches_;
  std::unordered_map<const KernelObject*, std::string> launched_digests_;
  std::unordered_map<std::uint64_t, const KernelObject*> by_object_;
  std::vector<LoadedCode> loads_;
  std::unordered_map<std::uint64_t, std::uint64_t> memory_readers_;
  std::string failure_;
};

}  // namespace kerncap::capture
