#include "replay/kernarg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using codeobject::Kernel;
using codeobject::KernelArgument;

enum class Action { keep, zero, queue, shared_base, private_base, host_calls };

struct HiddenRow {
  std::string_view value_kind;
  Action action;
  const char* note;  // for the verdict when a captured non-zero value is replaced; nullptr: none needed
};

// Hidden values not listed here are kept: grid and group sizes, offsets, the device heap and the grid-barrier block,
// which lie in captured memory.
constexpr HiddenRow hidden_rows[] = {
    {"hidden_queue_ptr", Action::queue, nullptr},
    {"hidden_shared_base", Action::shared_base, nullptr},
    {"hidden_private_base", Action::private_base, nullptr},
    // Served by a thread of the application; nobody answers here.
    {"hidden_hostcall_buffer", Action::host_calls,
     "the kernel has a hostcall buffer (printf, assert or malloc on the device); calls to the host fault in a replay"},
    {"hidden_default_queue", Action::zero, "the kernel may enqueue kernels by itself; that faults in a replay"},
    {"hidden_completion_action", Action::zero, nullptr},
};

// What a candidate compiled for another code object version asks for and the captured kernel did not have: grid and
// group sizes follow from the packet.
struct DerivedRow {
  std::string_view value_kind;
  std::uint64_t (*value)(const ProcessValues& values);
};

template <int axis>
constexpr auto block_count = [](const ProcessValues& v) -> std::uint64_t { return v.grid[axis] / v.workgroup[axis]; };
template <int axis>
constexpr auto group_size = [](const ProcessValues& v) -> std::uint64_t { return v.workgroup[axis]; };
template <int axis>
constexpr auto remainder = [](const ProcessValues& v) -> std::uint64_t { return v.grid[axis] % v.workgroup[axis]; };
constexpr auto nothing = [](const ProcessValues&) -> std::uint64_t { return 0; };

constexpr DerivedRow derived_rows[] = {
    {"hidden_block_count_x", block_count<0>},
    {"hidden_block_count_y", block_count<1>},
    {"hidden_block_count_z", block_count<2>},
    {"hidden_group_size_x", group_size<0>},
    {"hidden_group_size_y", group_size<1>},
    {"hidden_group_size_z", group_size<2>},
    {"hidden_remainder_x", remainder<0>},
    {"hidden_remainder_y", remainder<1>},
    {"hidden_remainder_z", remainder<2>},
    {"hidden_global_offset_x", nothing},
    {"hidden_global_offset_y", nothing},
    {"hidden_global_offset_z", nothing},
    {"hidden_multigrid_sync_arg", nothing},
    {"hidden_grid_dims", [](const ProcessValues& v) -> std::uint64_t { return v.dimensions; }},
};

const HiddenRow* row_for(std::string_view value_kind) {
  for (const HiddenRow& row : hidden_rows) {
    if (row.value_kind == value_kind) return &row;
  }
  return nullptr;
}

std::vector<const KernelArgument*> explicit_arguments(const Kernel& kernel) {
  std::vector<const KernelArgument*> result;
  for (const KernelArgument& argument : kernel.arguments) {
    if (!argument.hidden()) result.push_back(&argument);
  }
  return result;
}

const KernelArgument* find_hidden(const Kernel& kernel, std::string_view value_kind) {
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.value_kind == value_kind) return &argument;
  }
  return nullptr;
}

}  // namespace

KernargResult build_kernarg(const Kernel& captured, std::span<const std::byte> captured_bytes, const Kernel& kernel,
                            const ProcessValues& values) {
  KernargResult result;
  const auto want = explicit_arguments(captured), have = explicit_arguments(kernel);
  // A kernel without argument metadata (hand-written assembly) gets the captured bytes as they are.
  if (!want.empty() || !have.empty()) {
    if (want.size() != have.size()) {
      support::fail(
          support::ExitCode::bad_input,
          "the candidate kernel takes {} parameters, the captured one {}: it cannot be given the captured arguments",
          have.size(), want.size());
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (want[i]->offset != have[i]->offset || want[i]->size != have[i]->size) {
        support::fail(
            support::ExitCode::bad_input,
            "parameter {} of the candidate kernel has {} bytes at offset {}, in the captured one {} at {}: it "
            "cannot be given the captured arguments",
            i, have[i]->size, have[i]->offset, want[i]->size, want[i]->offset);
      }
    }
  }
  const std::size_t size = std::max<std::size_t>(kernel.kernarg_size, &captured == &kernel ? captured_bytes.size() : 0);
  result.bytes.resize(size);
  const bool same_layout = captured.arguments == kernel.arguments;
  if (same_layout || kernel.arguments.empty()) {
    std::copy_n(captured_bytes.begin(), std::min(size, captured_bytes.size()), result.bytes.begin());
  } else {
    for (const KernelArgument* argument : have) {
      const std::size_t begin = argument->offset, end = begin + argument->size;
      if (end > captured_bytes.size() || end > size) {
        support::fail(support::ExitCode::bad_input, "the kernel's parameters reach past its kernarg segment");
      }
      std::copy(captured_bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                captured_bytes.begin() + static_cast<std::ptrdiff_t>(end),
                result.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
    }
  }
  for (const KernelArgument& argument : kernel.arguments) {
    if (!argument.hidden()) continue;
    const std::size_t begin = argument.offset, end = begin + argument.size;
    if (end > size || argument.size > 8) continue;  // newer compilers list hidden values past what they need
    const HiddenRow* row = row_for(argument.value_kind);
    std::uint64_t value = 0;
    std::uint64_t before = 0;
    std::memcpy(&before, result.bytes.data() + begin, argument.size);
    switch (row == nullptr ? Action::keep : row->action) {
      case Action::queue:
        value = values.queue;
        break;
      case Action::shared_base:
        value = values.shared_base;
        break;
      case Action::private_base:
        value = values.private_base;
        break;
      case Action::host_calls:
        value = values.host_calls;
        break;
      case Action::zero:
        break;
      case Action::keep: {
        if (same_layout) continue;
        const KernelArgument* source = find_hidden(captured, argument.value_kind);
        if (argument.value_kind == "hidden_none") continue;
        if (source == nullptr) {
          const auto* derived = std::find_if(std::begin(derived_rows), std::end(derived_rows),
                                             [&](const DerivedRow& r) { return r.value_kind == argument.value_kind; });
          if (derived == std::end(derived_rows)) {
            result.notes.push_back(
                fmt::format("the candidate wants '{}', which the captured kernel did not have; it "
                            "gets zero",
                            argument.value_kind));
            continue;
          }
          value = derived->value(values);
          break;
        }
        if (source->size != argument.size || std::size_t{source->offset} + source->size > captured_bytes.size())
          continue;
        std::memcpy(&value, captured_bytes.data() + source->offset, source->size);
        break;
      }
    }
    std::memcpy(result.bytes.data() + begin, &value, argument.size);
    if (row != nullptr && value != before) {
      result.rewrites.push_back({argument.offset, argument.size, argument.value_kind});
      if (row->note != nullptr && before != 0 && value == 0) result.notes.emplace_back(row->note);
    }
  }
  return result;
}

}  // namespace kerncap::replay
