// The code objects of a replay: the captured ones where they were, or a candidate in place of the kernel's own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/snapshot/reader.h"
#include "replay/code_image.h"
#include "replay/device.h"
#include "replay/patches.h"
#include "replay/plan.h"

namespace kerncap::replay {

// A device variable that exists in the captured code object and in the candidate.
struct VariablePair {
  std::string name;
  std::uint64_t captured_address = 0, candidate_address = 0, size = 0;
};

struct Program {
  std::uint64_t kernel_object = 0;
  codeobject::Kernel kernel;  // the layout to launch with
  std::uint32_t private_segment_size = 0, group_segment_size = 0;
  std::vector<std::string> notes;

  // Only with a candidate:
  bool candidate = false;
  std::uint64_t load_base = 0, load_size = 0;
  std::vector<VariablePair> variables;
  std::vector<std::string> missing_variables;  // captured, not in the candidate
  Patches pointers;                            // code pointers of the snapshot that had to be relocated
  hsa_executable_t executable{};               // of the candidate; with its bytes, which the runtime reads again
  hsa_code_object_reader_t code_reader{};
  std::shared_ptr<std::vector<std::byte>> bytes;
  std::optional<Range> room;  // where the candidate was put on purpose
};

// Loads every captured code object at its address; with `candidate` (an ELF's bytes), that one in place of the kernel's
// own. Throws Error{environment} when the loader puts one elsewhere, Error{bad_input} when the candidate doesn't fit
// the snapshot: no such kernel, other processor, a code pointer in memory without a counterpart.
Program load_program(const snapshot::Reader& reader, std::size_t dispatch, const Device& device, const Plan& plan,
                     const std::optional<std::vector<std::byte>>& candidate, const std::string& candidate_name);

// The same without the kernel's own code object: its place stays empty until replace_candidate().
Program load_surroundings(const snapshot::Reader& reader, std::size_t dispatch, const Device& device, const Plan& plan);

// Unloads the candidate that `program` has, if any, and loads another one. Throws like load_program(); then `program`
// is without a candidate, and a later call may bring one.
void replace_candidate(Program& program, const snapshot::Reader& reader, std::size_t dispatch, const Device& device,
                       const Plan& plan, const std::vector<std::byte>& candidate, const std::string& candidate_name);

// Where each code pointer must point when the candidate is loaded with `candidate_delta` (loaded address minus ELF
// address) in place of the captured code object `load`. Pure; exposed for tests. Throws Error{bad_input} for a pointer
// whose target has no counterpart.
Patches relocate(const snapshot::Dispatch& dispatch, const CodeImage& captured, const snapshot::CodeObjectLoad& load,
                 const CodeImage& candidate, std::uint64_t candidate_delta);

// Does every symbol of the captured image lie at the same offset in the candidate? Pure.
bool same_layout(const CodeImage& captured, const CodeImage& candidate);

// The device variables that both images have under the same name and size; deltas as above. Read-only data counts as a
// variable where `written_by_host` says so; otherwise it comes with the code, and a candidate may have its own. Pure.
std::vector<VariablePair> match_variables(const CodeImage& captured, std::uint64_t captured_delta,
                                          const CodeImage& candidate, std::uint64_t candidate_delta,
                                          const std::function<bool(const ImageSymbol&)>& written_by_host,
                                          std::vector<std::string>& missing);

}  // namespace kerncap::replay
