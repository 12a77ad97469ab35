// State's comparing half: what a run left in memory against what it should have left.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/memory.h"
#include "replay/parallel.h"
#include "replay/state.h"
#include "replay/wiped_buffer.h"

namespace kerncap::replay {
namespace {

using snapshot::Region;
using snapshot::RegionKind;

constexpr std::uint64_t chunk = snapshot::chunk_size;
constexpr std::uint64_t buffer_size = 64 * chunk;  // 4 MiB: few copies, little memory
constexpr unsigned trial_slack = 4;

}  // namespace

// Which chunks are byte by byte what write_all() put there and are expected to be so.
std::vector<std::vector<bool>> State::as_written(const Expected& state) {
  std::vector<Work> work;
  std::vector<std::vector<bool>> same(written_.size());
  std::vector<std::vector<char>> found(written_.size());  // one byte each: threads write neighbours
  for (std::size_t index = 0; index < written_.size(); ++index) {
    same[index].resize(dirty_[index].size());
    found[index].resize(dirty_[index].size());
    const Placement* placement = placement_of(plan_, index);
    if (placement == nullptr || written_[index].empty()) continue;
    for (std::uint64_t first = 0; first < written_[index].size(); first += work_chunks) {
      work.push_back({placement, index, first, std::min<std::uint64_t>(first + work_chunks, written_[index].size())});
    }
  }
  for_each_parallel(work.size(), [&](std::size_t i) {
    const Work& w = work[i];
    const Region& region = state.dispatch().regions[w.region];
    std::vector<std::byte> buffer(std::min(w.last * chunk, region.size) - w.first * chunk);
    read_memory(is_host_memory(*w.placement), access_address(*w.placement, region.address + w.first * chunk), buffer);
    for (std::uint64_t c = w.first; c < w.last; ++c) {
      const std::uint64_t at = (c - w.first) * chunk;
      const auto bytes = std::span(buffer).subspan(at, std::min(chunk, buffer.size() - at));
      found[w.region][c] = support::xxh3_128(bytes) == written_[w.region][c] ? 1 : 0;
    }
  });
  for (std::size_t index = 0; index < found.size(); ++index) {
    for (std::uint64_t c = 0; c < found[index].size(); ++c) {
      if (found[index][c] == 0) {
        dirty_[index][c] = true;
      } else {
        same[index][c] = !state.is_changed_after(index, c);
      }
    }
  }
  return same;
}

void State::compare_piece(const Expected& state, const std::vector<std::vector<bool>>& same, Piece& piece,
                          const Noise& noise, Extent extent, Comparing& result) {
  const Region& region = state.dispatch().regions[piece.region];
  const std::uint64_t most = std::min(buffer_size, (piece.size + 7) / 8 * 8);
  WipedBuffer expected(most);
  if (scratch_.size() < most) scratch_.resize(most);
  Part part;
  part.what = piece.what;
  part.argument = piece.argument;
  part.type = to_string(piece.element);
  part.address = piece.actual_address;
  part.size = piece.size;
  part.tolerance = piece.tolerance;
  if (const auto found = noise.find(piece.what); found != noise.end() && is_floating(piece.element)) {
    // Twice the largest deviation seen: the application's own run is one more sample of the same spread.
    part.tolerance.absolute = std::max(part.tolerance.absolute, 2 * found->second);
  }
  if (trial_) {
    // The rules were made for the captured inputs; on others an honest kernel's rounding may come out a little larger.
    part.tolerance.absolute *= trial_slack;
    part.tolerance.relative *= trial_slack;
    part.tolerance.ulps *= trial_slack;
  }
  auto& dirty = dirty_[piece.region];
  const std::uint64_t element = size_of(piece.element);
  const bool every_element = is_floating(piece.element) && part.tolerance.nan == NanPolicy::forbidden;
  const auto settled = [&](std::uint64_t c) {
    return extent == Extent::outputs ? !dirty[c] : !every_element && same[piece.region][c];
  };
  for (std::uint64_t at = 0; at < piece.size;) {
    std::uint64_t size = std::min(most / element * element, piece.size - at);
    const std::uint64_t c = (piece.offset + at) / chunk, end_of_chunk = (c + 1) * chunk - piece.offset;
    if (settled(c)) {
      // On to the next chunk, but by whole elements, and not over one that reaches into a chunk that is not settled.
      std::uint64_t next = std::min(piece.size, end_of_chunk / element * element);
      if (next <= at && settled((piece.offset + std::min(at + element, piece.size) - 1) / chunk))
        next = std::min(piece.size, at + element);
      if (next > at) {
        if (extent == Extent::everything) {
          result.bytes += next - at;
          part.statistics.elements += (next - at) / element;
        }
        at = next;
        continue;
      }
    }
    size = std::min(size, std::max(element, (end_of_chunk - at + element - 1) / element * element));
    const auto want = expected.first(size);
    const auto got = std::span(scratch_).first(size);
    if (piece.unchanged_expected) {
      state.before(piece.region, piece.offset + at, want);
    } else {
      state.after(piece.region, piece.offset + at, want);
    }
    patches_.apply_where_original(region.address + piece.offset + at, want);
    read_memory(piece.host, piece.access_address + at, got);
    if (std::memcmp(want.data(), got.data(), size) != 0) {
      for (std::uint64_t d = c; d <= (piece.offset + at + size - 1) / chunk; ++d) dirty[d] = true;
    }
    replay::compare(piece.element, part.tolerance, want, got, at, part.statistics);
    result.bytes += size;
    at += size;
  }
  if (part.statistics.outside != 0 && part.statistics.first) {
    result.matches = false;
    FirstDifference first;
    first.address = piece.actual_address + part.statistics.first->offset;
    first.region_address =
        program_.candidate && region.kind == RegionKind::code_object ? piece.actual_address : region.address;
    first.region_kind = snapshot::to_string(region.kind);
    first.argument = piece.argument;
    first.what = piece.what;
    first.element = part.statistics.first->offset / element;
    first.type = to_string(piece.element);
    first.expected = part.statistics.first->expected;
    first.actual = part.statistics.first->actual;
    if (!result.first || first.address < result.first->address) result.first = std::move(first);
  }
  result.parts.push_back(std::move(part));
}

void State::compare_slack(Comparing& result) {
  if (slack_.empty()) return;
  std::vector<std::byte> actual(buffer_size);
  const std::vector<std::byte> zeros(buffer_size);
  for (const Range& range : slack_) {
    Part part;
    part.what = fmt::format("memory at {:#x} that the application had not allocated", range.address);
    part.type = to_string(ElementType::bytes);
    part.address = range.address;
    part.size = range.size;
    for (std::uint64_t at = 0; at < range.size; at += buffer_size) {
      const std::uint64_t size = std::min(buffer_size, range.size - at);
      read_memory(false, range.address + at, std::span(actual).first(size));
      replay::compare(ElementType::bytes, {}, std::span(zeros).first(size), std::span(actual).first(size), at,
                      part.statistics);
    }
    if (part.statistics.outside == 0) continue;
    result.matches = false;
    const std::uint64_t address = range.address + part.statistics.first->offset;
    if (!result.first || address < result.first->address) {
      result.first = FirstDifference{address,
                                     range.address,
                                     "slack",
                                     -1,
                                     part.what,
                                     part.statistics.first->offset,
                                     part.type,
                                     part.statistics.first->expected,
                                     part.statistics.first->actual};
    }
    clear_memory(false, range.address, range.size);
    result.parts.push_back(std::move(part));
  }
}

// Which argument's memory holds a pointer into this region: for people who must find out what "memory at 0x..." is.
std::string State::reached_from(const Expected& state, std::uint64_t region_index) const {
  const auto& regions = state.dispatch().regions;
  const Region& target = regions[region_index];
  std::uint64_t budget = 64u << 20;  // bytes looked through
  std::vector<std::byte> bytes(buffer_size);
  for (const Piece& piece : pieces_) {
    if (piece.argument < 0 || piece.element != ElementType::bytes) continue;
    const std::uint64_t skip = (8 - (piece.actual_address & 7)) & 7;
    for (std::uint64_t at = skip; at + 8 <= piece.size && budget != 0;) {
      const std::uint64_t size = std::min({buffer_size, (piece.size - at) / 8 * 8, budget});
      if (size < 8) break;
      state.before(piece.region, piece.offset + at, std::span(bytes).first(size));
      for (std::uint64_t word = 0; word + 8 <= size; word += 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + word, sizeof value);
        if (value < target.address || value - target.address >= target.size) continue;
        return fmt::format("reached from {} (pointer at byte {})", piece.what, at + word);
      }
      at += size;
      budget -= std::min(budget, size);
    }
  }
  return {};
}

Comparing State::compare(Extent extent, const Noise& noise) {
  const Expected state = expected(true);
  Comparing result;
  std::vector<std::vector<bool>> same;
  if (extent == Extent::everything) same = as_written(state);
  for (Piece& piece : pieces_) compare_piece(state, same, piece, noise, extent, result);
  if (extent == Extent::everything) compare_slack(result);
  if (result.first && result.first->argument < 0 && result.first->what.starts_with("memory at")) {
    for (std::size_t i = 0; i < state.dispatch().regions.size(); ++i) {
      if (state.dispatch().regions[i].address != result.first->region_address) continue;
      if (const std::string path = reached_from(state, i); !path.empty()) result.first->what += ", " + path;
    }
  }
  return result;
}

}  // namespace kerncap::replay
