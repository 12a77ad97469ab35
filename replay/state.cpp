#include "replay/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/support/error.h"
#include "core/support/file.h"
#include "replay/memory.h"
#include "replay/parallel.h"
#include "replay/wiped_buffer.h"

namespace kerncap::replay {
namespace {

using snapshot::Reader;
using snapshot::Region;
using snapshot::RegionKind;

constexpr std::uint64_t chunk = snapshot::chunk_size;

std::string memory_label(const Region& region) {
  return fmt::format("memory at {:#x} ({})", region.address, snapshot::to_string(region.kind));
}

// Where the application's runtime answered the kernel's calls to the host; 0: nowhere.
std::uint64_t captured_host_call_buffer(const snapshot::Dispatch& dispatch, std::span<const std::byte> kernarg) {
  std::uint64_t address = 0;
  for (const codeobject::KernelArgument& argument : dispatch.kernel.arguments) {
    if (argument.value_kind == "hidden_hostcall_buffer" && argument.offset + sizeof address <= kernarg.size())
      std::memcpy(&address, kernarg.data() + argument.offset, sizeof address);
  }
  return address;
}

// Holes of a 2 MiB block that belong to no captured region.
std::vector<Range> slack_of(const Plan& plan, const std::vector<Region>& regions) {
  std::vector<Range> result;
  for (const Placement& placement : plan.placements) {
    if (!placement.whole_block) continue;
    std::uint64_t at = placement.address;
    for (const std::size_t index : placement.regions) {
      const Region& region = regions[index];
      if (region.address > at) result.push_back({at, region.address - at});
      at = region.address + region.size;
    }
    const std::uint64_t end = placement.address + placement.size;
    if (end > at) result.push_back({at, end - at});
  }
  return result;
}

}  // namespace

State::State(const std::filesystem::path& snapshot, std::size_t dispatch, const Plan& plan, const Program& program,
             std::vector<Argument> arguments, ValidateRules rules, Patches patches)
    : snapshot_(snapshot),
      dispatch_(dispatch),
      plan_(plan),
      program_(program),
      arguments_(std::move(arguments)),
      rules_(std::move(rules)),
      patches_(std::move(patches)) {
  const Reader reader(snapshot_);
  manifest_hash_ = hash_of_manifest();
  if (program_.candidate) {
    pristine_image_.resize(program_.load_size);
    read_memory(false, program_.load_base, pristine_image_);
  }
  make_pieces(reader);
  const auto& regions = reader.manifest().dispatches[dispatch_].regions;
  slack_ = slack_of(plan_, regions);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    dirty_.emplace_back(reader.chunks(dispatch_, i), false);
    for (std::uint64_t c = 0; c < dirty_[i].size(); ++c) dirty_[i][c] = reader.changed(dispatch_, i, c);
  }
  changed_by_application_ = dirty_;
}

support::Hash128 State::hash_of_manifest() const {
  const std::string text = support::read_text_file(snapshot_ / "manifest.json");
  return support::xxh3_128(std::as_bytes(std::span(text)));
}

// The manifest holds the hash of everything else, so a snapshot that was rewritten meanwhile is noticed, whatever its
// own checksums say.
Expected State::expected(bool with_outcome) const {
  if (!(hash_of_manifest() == manifest_hash_)) {
    support::fail(support::ExitCode::bad_input, "the snapshot '{}' was changed while it was being replayed",
                  snapshot_.string());
  }
  return Expected(snapshot_, dispatch_, trial_, with_outcome);
}

bool State::is_candidates_own(const snapshot::Dispatch& dispatch, const Placement& placement) const {
  return program_.candidate && placement.method == Method::code_object &&
         placement.code_object == dispatch.code_object && placement.agent == dispatch.agent;
}

void State::make_pieces(const Reader& reader) {
  const snapshot::Dispatch& dispatch = reader.manifest().dispatches[dispatch_];
  const std::uint64_t host_calls = captured_host_call_buffer(dispatch, reader.kernarg(dispatch_));
  for (std::size_t i = 0; i < dispatch.regions.size(); ++i) {
    const Region& region = dispatch.regions[i];
    if (region.size == 0) continue;
    const Placement* placement = placement_of(plan_, i);
    if (placement == nullptr) {
      skipped_.push_back({region.address, region.size, "no load of a code object covers it, so it was not restored"});
      continue;
    }
    Piece piece;
    piece.region = i;
    piece.host = is_host_memory(*placement);
    if (is_candidates_own(dispatch, *placement)) {
      // The candidate stands here: its variables are compared by name, its code is its own.
      skipped_.push_back(
          {region.address, region.size,
           "the captured code object, which the candidate replaces; its device variables are compared by name"});
      for (const VariablePair& variable : program_.variables) {
        if (variable.captured_address < region.address ||
            variable.captured_address + variable.size > region.address + region.size) {
          continue;
        }
        piece.offset = variable.captured_address - region.address;
        piece.size = variable.size;
        piece.actual_address = piece.access_address = variable.candidate_address;
        piece.element_base = variable.candidate_address;
        piece.tolerance = rules_.tolerance;
        piece.what = fmt::format("device variable '{}'", variable.name);
        pieces_.push_back(piece);
      }
      continue;
    }
    // The application's threads fill kernel-argument memory for the next dispatches while this one runs, so its state
    // after is not the kernel's doing. A kernel must leave it as it is.
    const bool holds_kernarg = region.agent < 0 && dispatch.kernarg_address >= region.address &&
                               dispatch.kernarg_address - region.address < region.size;
    // Nor is what the application's runtime did in the buffer through which the kernel called the host: ours is
    // elsewhere.
    const bool holds_host_calls =
        region.agent < 0 && host_calls >= region.address && host_calls - region.address < region.size;
    piece.unchanged_expected = region.kind == RegionKind::host_kernarg || holds_kernarg || holds_host_calls;
    for (const Span& span : spans_of(region, arguments_, rules_)) {
      if (span.ignore) {
        skipped_.push_back(
            {span.address, span.size,
             arguments_[static_cast<std::size_t>(span.argument)].label() + ": the rules say to ignore it"});
        continue;
      }
      piece.offset = span.address - region.address;
      piece.size = span.size;
      piece.actual_address = span.address;
      piece.access_address = access_address(*placement, span.address);
      piece.element_base = span.address;
      piece.element = span.element;
      piece.tolerance = span.tolerance;
      piece.argument = span.argument < 0 ? -1 : arguments_[static_cast<std::size_t>(span.argument)].index;
      piece.what =
          span.argument < 0 ? memory_label(region) : arguments_[static_cast<std::size_t>(span.argument)].label();
      pieces_.push_back(piece);
    }
  }
}

// Chunks [first, last) of a region get their content.
void State::write_chunks(const Expected& state, const Placement& placement, std::size_t index, std::uint64_t first,
                         std::uint64_t last) {
  const Region& region = state.dispatch().regions[index];
  const bool host = is_host_memory(placement);
  std::vector<std::byte> buffer(std::min(last * chunk, region.size) - first * chunk);
  const std::uint64_t address = region.address + first * chunk, access = access_address(placement, address);
  state.before(index, first * chunk, buffer);
  patches_.apply(address, buffer);
  for (std::uint64_t c = first; c < last; ++c) {
    const std::uint64_t at = (c - first) * chunk;
    written_[index][c] = support::xxh3_128(std::span(buffer).subspan(at, std::min(chunk, buffer.size() - at)));
  }
  if (placement.method == Method::code_object) {
    // Code that the loader has written already stays untouched; variables get the application's values.
    std::vector<std::byte> current(buffer.size());
    read_memory(host, access, current);
    if (current == buffer) return;
  }
  write_memory(host, access, buffer);
}

void State::write_all() {
  const Expected state = expected(false);
  const Reader& reader = state.reader();
  const auto& dispatch = state.dispatch();
  const auto& regions = dispatch.regions;
  std::vector<Work> work;
  const std::vector<std::byte> zeros(chunk);
  const support::Hash128 zero_hash = support::xxh3_128(zeros);
  written_.assign(regions.size(), {});
  for (const Placement& placement : plan_.placements) {
    if (is_candidates_own(dispatch, placement)) continue;
    const bool host = is_host_memory(placement);
    if (placement.whole_block) clear_memory(host, placement.address, placement.size);
    for (const std::size_t index : placement.regions) {
      const Region& region = regions[index];
      const std::uint64_t count = reader.chunks(dispatch_, index);
      written_[index].resize(count);
      const auto is_zero = [&](std::uint64_t c) {
        return placement.method != Method::code_object && state.is_zero_before(index, c) &&
               !patches_.touches(region.address + c * chunk, std::min(chunk, region.size - c * chunk));
      };
      for (std::uint64_t first = 0; first < count;) {
        const bool zero = is_zero(first);
        std::uint64_t last = first + 1;
        while (last < count && (zero || last - first < work_chunks) && is_zero(last) == zero) ++last;
        if (!zero) {
          work.push_back({&placement, index, first, last});
        } else {
          const std::uint64_t size = std::min(last * chunk, region.size) - first * chunk;
          if (!placement.whole_block)
            clear_memory(host, access_address(placement, region.address + first * chunk), size);
          for (std::uint64_t c = first; c < last; ++c) {
            const std::uint64_t length = std::min(chunk, region.size - c * chunk);
            written_[index][c] = length == chunk ? zero_hash : support::xxh3_128(std::span(zeros).first(length));
          }
        }
        first = last;
      }
    }
  }
  for_each_parallel(work.size(), [&](std::size_t i) {
    write_chunks(state, *work[i].placement, work[i].region, work[i].first, work[i].last);
  });
  write_candidate(state);
}

// The loader's image, with the application's values in the variables.
void State::write_candidate(const Expected& state) {
  candidate_image_.resize(program_.load_size);
  if (!program_.candidate || program_.load_size == 0) return;
  write_memory(false, program_.load_base, pristine_image_);
  for (const Piece& piece : pieces_) {
    if (!piece.what.starts_with("device variable")) continue;
    std::vector<std::byte> value(piece.size);
    state.before(piece.region, piece.offset, value);
    patches_.apply(state.dispatch().regions[piece.region].address + piece.offset, value);
    write_memory(false, piece.actual_address, value);
  }
  read_memory(false, program_.load_base, candidate_image_);
}

void State::mark(const std::function<bool(std::uint64_t address, std::uint64_t size)>& is_dirty) {
  const Reader reader(snapshot_);
  const auto& regions = reader.manifest().dispatches[dispatch_].regions;
  for (std::size_t index = 0; index < dirty_.size(); ++index) {
    for (std::uint64_t c = 0; c < dirty_[index].size(); ++c) {
      const std::uint64_t size = std::min(chunk, regions[index].size - c * chunk);
      if (!dirty_[index][c] && is_dirty(regions[index].address + c * chunk, size)) dirty_[index][c] = true;
    }
  }
}

std::uint64_t State::retarget(std::vector<Argument> arguments, Patches patches) {
  if (!patches_.empty() || !patches.empty()) {
    mark([&](std::uint64_t address, std::uint64_t size) {
      return patches_.touches(address, size) || patches.touches(address, size);
    });
  }
  if (trial_) {
    mark([&](std::uint64_t address, std::uint64_t size) { return trial_->perturbation.touches(address, size); });
    trial_.reset();
  }
  patches_ = std::move(patches);
  arguments_ = std::move(arguments);
  pristine_image_.resize(program_.load_size);
  read_memory(false, program_.load_base, pristine_image_);
  pieces_.clear();
  skipped_.clear();
  make_pieces(Reader(snapshot_));
  write_candidate(expected(false));
  const std::uint64_t written = write_dirty();
  dirty_ = changed_by_application_;
  return written;
}

void State::restore_candidate_memory() {
  // Also what has no name: a static counter would let a kernel know that it ran before.
  std::vector<std::byte> current(candidate_image_.size());
  read_memory(false, program_.load_base, current);
  constexpr std::size_t step = 4096;
  for (std::size_t at = 0; at < current.size(); at += step) {
    const std::size_t size = std::min(step, current.size() - at);
    if (std::memcmp(current.data() + at, candidate_image_.data() + at, size) == 0) continue;
    write_memory(false, program_.load_base + at, std::span(candidate_image_).subspan(at, size));
  }
}

std::uint64_t State::write_dirty() {
  const Expected state = expected(false);
  const auto& dispatch = state.dispatch();
  std::vector<Work> work;
  std::uint64_t written = 0;
  for (std::size_t index = 0; index < dirty_.size(); ++index) {
    const Placement* placement = placement_of(plan_, index);
    if (placement == nullptr || is_candidates_own(dispatch, *placement)) continue;
    const std::uint64_t count = dirty_[index].size();
    for (std::uint64_t first = 0; first < count; ++first) {
      if (!dirty_[index][first]) continue;
      std::uint64_t last = first + 1;
      while (last < count && dirty_[index][last] && last - first < work_chunks) ++last;
      work.push_back({placement, index, first, last});
      written += std::min(last * chunk, dispatch.regions[index].size) - first * chunk;
      first = last - 1;
    }
  }
  for_each_parallel(work.size(), [&](std::size_t i) {
    write_chunks(state, *work[i].placement, work[i].region, work[i].first, work[i].last);
  });
  if (program_.candidate) restore_candidate_memory();
  return written;
}

std::uint64_t State::set_trial(std::optional<Trial> trial) {
  for (const std::optional<Trial>* which : {&std::as_const(trial_), &std::as_const(trial)}) {
    if (!*which) continue;
    mark([&](std::uint64_t address, std::uint64_t size) { return (*which)->perturbation.touches(address, size); });
  }
  trial_ = std::move(trial);
  const std::uint64_t written = write_dirty();
  dirty_ = changed_by_application_;
  return written;
}

std::vector<Perturbation::Stretch> State::floating_stretches() const {
  std::vector<Perturbation::Stretch> result;
  for (const Piece& piece : pieces_) {
    const bool usable = piece.argument >= 0 && is_floating(piece.element) && !piece.unchanged_expected;
    // Cuts on multiples of 8 must not cut elements: perturbation.h.
    if (!usable || piece.actual_address % size_of(piece.element) != 0 || (piece.actual_address - piece.offset) % 8 != 0)
      continue;
    result.push_back({piece.actual_address, piece.size, piece.element, Perturbation::Kind::scale_floats});
  }
  return result;
}

std::vector<Perturbation::Stretch> State::flipped_stretches(const Argument& argument) const {
  std::vector<Perturbation::Stretch> result;
  const std::string label = argument.label();
  for (const Piece& piece : pieces_) {
    if (piece.what != label || piece.unchanged_expected || is_floating(piece.element)) continue;
    result.push_back({piece.actual_address, piece.size, piece.element, Perturbation::Kind::flip_bytes});
  }
  return result;
}

void State::write_outcome() {
  const Expected state = expected(false);
  const int fd = ::open(trial_->outcome.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0)
    support::fail(support::ExitCode::environment, "cannot write '{}': {}", trial_->outcome.string(),
                  std::strerror(errno));
  WipedBuffer before(chunk), actual(chunk);
  for (std::size_t index = 0; index < dirty_.size(); ++index) {
    const Placement* placement = placement_of(plan_, index);
    if (placement == nullptr || is_candidates_own(state.dispatch(), *placement)) continue;
    const Region& region = state.dispatch().regions[index];
    for (std::uint64_t c = 0; c < dirty_[index].size(); ++c) {
      const std::uint64_t size = std::min(chunk, region.size - c * chunk), address = region.address + c * chunk;
      state.before(index, c * chunk, before.first(size));
      patches_.apply(address, before.first(size));
      read_memory(is_host_memory(*placement), access_address(*placement, address), actual.first(size));
      if (std::memcmp(before.first(size).data(), actual.first(size).data(), size) == 0) continue;
      dirty_[index][c] = true;
      const OutcomeRecord record{index, c, size};
      support::write_all(fd, std::as_bytes(std::span(&record, 1)), trial_->outcome.string());
      support::write_all(fd, actual.first(size), trial_->outcome.string());
    }
  }
  ::close(fd);
}

}  // namespace kerncap::replay
