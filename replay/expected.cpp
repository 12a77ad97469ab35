#include "replay/expected.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

constexpr std::uint64_t chunk_bytes = snapshot::chunk_size;

void read_exactly(int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      support::fail(support::ExitCode::environment, "the outcome of the captured kernel cannot be read back");
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace

Expected::Expected(const std::filesystem::path& snapshot, std::size_t dispatch, const std::optional<Trial>& trial,
                   bool with_outcome)
    : reader_(snapshot), dispatch_(dispatch), trial_(trial) {
  if (!trial_ || !with_outcome) return;
  outcome_fd_ = ::open(trial_->outcome.c_str(), O_RDONLY | O_CLOEXEC);
  if (outcome_fd_ < 0) support::fail(support::ExitCode::environment, "cannot open '{}'", trial_->outcome.string());
  const off_t end = ::lseek(outcome_fd_, 0, SEEK_END);
  OutcomeRecord record;
  for (std::uint64_t at = 0; at + sizeof record <= static_cast<std::uint64_t>(end); at += sizeof record + record.size) {
    read_exactly(outcome_fd_, at, std::as_writable_bytes(std::span(&record, 1)));
    outcome_[{record.region, record.chunk}] = at + sizeof record;
  }
}

Expected::~Expected() {
  if (outcome_fd_ >= 0) ::close(outcome_fd_);
}

void Expected::before(std::size_t region, std::uint64_t offset, std::span<std::byte> out) const {
  reader_.read(dispatch_, region, snapshot::State::before, offset, out);
  if (trial_) trial_->perturbation.apply(dispatch().regions[region].address + offset, out);
}

void Expected::after(std::size_t region, std::uint64_t offset, std::span<std::byte> out) const {
  if (!trial_) return reader_.read(dispatch_, region, snapshot::State::after, offset, out);
  before(region, offset, out);
  const std::uint64_t size = dispatch().regions[region].size;
  for (std::uint64_t c = offset / chunk_bytes; c * chunk_bytes < offset + out.size(); ++c) {
    const auto found = outcome_.find({region, c});
    if (found == outcome_.end()) continue;
    const std::uint64_t begin = std::max(offset, c * chunk_bytes);
    const std::uint64_t end = std::min({offset + out.size(), (c + 1) * chunk_bytes, size});
    read_exactly(outcome_fd_, found->second + (begin - c * chunk_bytes), out.subspan(begin - offset, end - begin));
  }
}

bool Expected::is_changed_after(std::size_t region, std::uint64_t chunk) const {
  return trial_ ? outcome_.contains({region, chunk}) : reader_.changed(dispatch_, region, chunk);
}

bool Expected::is_zero_before(std::size_t region, std::uint64_t chunk) const {
  if (!reader_.is_zero(dispatch_, region, snapshot::State::before, chunk)) return false;
  return !trial_ ||
         !trial_->perturbation.touches(dispatch().regions[region].address + chunk * chunk_bytes, chunk_bytes);
}

}  // namespace kerncap::replay
