#include "core/snapshot/writer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "core/snapshot/chunk_store.h"
#include "core/snapshot/layout.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/xxh3_stream.h"

namespace kerncap::snapshot {
namespace {

using support::ExitCode;
using support::fail;

constexpr std::uint32_t unset = UINT32_MAX;  // no chunk has this id: the store stops before it

std::uint64_t chunk_count(std::uint64_t size) { return (size + chunk_size - 1) / chunk_size; }

// The writer lives in other people's processes: their signal handlers must not run on our threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

 private:
  sigset_t old_{};
};

}  // namespace

struct Writer::Implementation {
  struct RegionIds {
    std::uint64_t address = 0, size = 0;
    std::vector<std::uint32_t> before, after;
  };
  struct DispatchIds {
    std::vector<RegionIds> regions;
    std::string kernarg_checksum;  // empty: not given yet
  };
  struct Job {
    RegionIds* region;
    State state;
    std::uint64_t offset;
    std::span<const std::byte> data;
    std::function<void()> released;
  };

  support::AtomicFolder folder;
  WriterOptions options;
  ChunkStore store;
  std::deque<DispatchIds> dispatches;  // a deque: jobs keep pointers into it
  std::set<std::string, std::less<>> code_objects;

  std::mutex mutex;  // everything below
  std::condition_variable work, idle;
  std::deque<Job> queue;
  std::size_t busy = 0;
  bool stop = false;
  std::exception_ptr error;
  std::uint64_t raw_bytes = 0;
  std::vector<std::thread> threads;

  Implementation(std::filesystem::path path, WriterOptions o)
      : folder(std::move(path), o.replace),
        options(o),
        store(folder.path(), o.compression_level, o.pack_size, o.sync) {}

  ~Implementation() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void start_threads() {
    if (!threads.empty()) return;
    unsigned count = options.threads;
    if (count == 0) count = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
    const SignalsBlocked blocked;
    try {
      for (unsigned i = 0; i < count; ++i) threads.emplace_back([this] { run(); });
    } catch (const std::system_error& failure) {
      if (threads.empty())
        fail(ExitCode::environment, "cannot start a thread to write the snapshot: {}", failure.what());
    }
  }

  void run() {
    std::optional<ChunkStore::Lane> lane;
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || !queue.empty(); });
      if (queue.empty()) return;  // stop: the queue is worked off first
      Job job = std::move(queue.front());
      queue.pop_front();
      ++busy;
      const bool damaged = error != nullptr;
      lock.unlock();
      std::exception_ptr failure;
      try {
        if (!damaged) {
          if (!lane) lane.emplace(store);
          add(*lane, job);
        }
      } catch (...) {
        failure = std::current_exception();
      }
      if (job.released) job.released();
      job = {};
      lock.lock();
      if (failure && !error) error = failure;
      // The last one out writes what its lane still holds, and so does everybody before going to sleep.
      if (queue.empty() && lane && !error) {
        lock.unlock();
        try {
          lane->flush();
        } catch (...) {
          failure = std::current_exception();
        }
        lock.lock();
        if (failure && !error) error = failure;
      }
      --busy;
      if (busy == 0 && queue.empty()) idle.notify_all();
    }
  }

  static void add(ChunkStore::Lane& lane, const Job& job) {
    std::vector<std::uint32_t>& ids = job.state == State::before ? job.region->before : job.region->after;
    std::uint64_t chunk = job.offset / chunk_size;
    for (std::span<const std::byte> rest = job.data; !rest.empty();) {
      const std::size_t length = std::min<std::uint64_t>(rest.size(), chunk_size);
      ids[chunk++] = lane.add(rest.first(length));
      rest = rest.subspan(length);
    }
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex);
    idle.wait(lock, [&] { return busy == 0 && queue.empty(); });
    if (error) std::rethrow_exception(error);
  }

  static void write_pages(DispatchIds& dispatch, const std::filesystem::path& path) {
    std::vector<layout::PagesRegion> regions;
    layout::PagesHeader header;
    for (RegionIds& region : dispatch.regions) {
      layout::PagesRegion record{region.address, region.size, header.after_count, 0};
      for (std::size_t c = 0; c < region.before.size(); ++c) {
        if (region.before[c] == unset) region.before[c] = 0;
        if (region.after[c] == unset) region.after[c] = region.before[c];
        if (region.after[c] != region.before[c]) ++record.after_count;
      }
      header.after_count += record.after_count;
      regions.push_back(record);
    }
    // Twice through it, once for the checksum, instead of a copy of everything.
    const auto payload = [&](auto&& sink) {
      sink(std::as_bytes(std::span(regions)));
      for (const RegionIds& region : dispatch.regions) sink(std::as_bytes(std::span(region.before)));
      std::vector<layout::AfterEntry> changes;
      const auto flush = [&] {
        sink(std::as_bytes(std::span(changes)));
        changes.clear();
      };
      for (const RegionIds& region : dispatch.regions)
        for (std::size_t c = 0; c < region.before.size(); ++c) {
          if (region.after[c] == region.before[c]) continue;
          changes.push_back({static_cast<std::uint32_t>(c), region.after[c]});
          if (changes.size() == 8192) flush();
        }
      flush();
    };
    support::Xxh3Stream checksum;
    payload([&](std::span<const std::byte> bytes) { checksum.update(bytes); });
    header.bytes_per_chunk = chunk_size;
    header.region_count = regions.size();
    header.hash_high = checksum.digest().high;
    header.hash_low = checksum.digest().low;
    support::AtomicFile file(path);
    file.write(std::as_bytes(std::span(&header, 1)));
    payload([&](std::span<const std::byte> bytes) { file.write(bytes); });
    file.commit();
  }

  DispatchIds& dispatch(std::size_t number) {
    if (number >= dispatches.size()) fail(ExitCode::usage, "the snapshot has no dispatch {}", number);
    return dispatches[number];
  }
};

Writer::Writer(std::filesystem::path folder, WriterOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(folder), options)) {}
Writer::~Writer() = default;

std::size_t Writer::begin_dispatch(const std::vector<Region>& regions) {
  Implementation::DispatchIds dispatch;
  std::uint64_t end = 0;
  for (const Region& region : regions) {
    if (region.size == 0 || region.address < end || region.size >= layout::address_limit ||
        region.address >= layout::address_limit)
      fail(ExitCode::bad_input, "the region at {:#x} with {} bytes is empty or overlaps another", region.address,
           region.size);
    end = region.address + region.size;
    const std::uint64_t count = chunk_count(region.size);
    dispatch.regions.push_back({region.address, region.size, std::vector<std::uint32_t>(count, unset),
                                std::vector<std::uint32_t>(count, unset)});
  }
  implementation_->dispatches.push_back(std::move(dispatch));
  return implementation_->dispatches.size() - 1;
}

void Writer::put(std::size_t dispatch, std::size_t region, State state, std::uint64_t offset,
                 std::span<const std::byte> data, std::function<void()> released) {
  Implementation& im = *implementation_;
  try {
    Implementation::DispatchIds& d = im.dispatch(dispatch);
    if (region >= d.regions.size()) fail(ExitCode::usage, "dispatch {} has no region {}", dispatch, region);
    Implementation::RegionIds& r = d.regions[region];
    if (offset % chunk_size != 0 || offset > r.size || data.size() > r.size - offset ||
        (data.size() % chunk_size != 0 && offset + data.size() != r.size))
      fail(ExitCode::usage, "bytes {} to {} are no whole chunks of the region at {:#x}", offset, offset + data.size(),
           r.address);
    const std::lock_guard lock(im.mutex);
    if (im.error) std::rethrow_exception(im.error);
    im.start_threads();
    im.raw_bytes += data.size();
    im.queue.push_back({&r, state, offset, data, std::move(released)});
  } catch (...) {
    if (released) released();
    throw;
  }
  im.work.notify_one();
}

void Writer::keep_regions(std::size_t dispatch, const std::vector<bool>& keep) {
  Implementation& im = *implementation_;
  im.wait_until_idle();  // no job points to a region any more
  auto& regions = im.dispatch(dispatch).regions;
  if (keep.size() != regions.size())
    fail(ExitCode::usage, "dispatch {} has {} regions, not {}", dispatch, regions.size(), keep.size());
  std::size_t number = 0;
  std::erase_if(regions, [&](const auto&) { return !keep[number++]; });
}

void Writer::drain() { implementation_->wait_until_idle(); }

void Writer::set_kernarg(std::size_t dispatch, std::span<const std::byte> bytes) {
  Implementation& im = *implementation_;
  const support::Hash128 hash = support::xxh3_128(bytes);
  im.dispatch(dispatch).kernarg_checksum = fmt::format("{:016x}{:016x}", hash.high, hash.low);
  support::AtomicFile file(im.folder.path() / fmt::format("kernarg-{}.bin", dispatch));
  file.write(bytes);
  file.commit();
}

void Writer::add_code_object(std::string_view digest, std::span<const std::byte> bytes) {
  Implementation& im = *implementation_;
  if (im.code_objects.contains(digest)) return;
  if (support::sha256_hex(bytes) != digest)
    fail(ExitCode::bad_input, "a code object does not have the digest {}", digest);
  const std::filesystem::path folder = im.folder.path() / "code";
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) fail(ExitCode::environment, "cannot write '{}': {}", folder.string(), error.message());
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  support::AtomicFile file(folder / fmt::format("{}.hsaco", digest));
  file.write(bytes);
  file.commit();
  im.code_objects.emplace(digest);
}

std::uint64_t Writer::changed_chunks(std::size_t dispatch) const {
  std::uint64_t count = 0;
  for (const auto& region : implementation_->dispatch(dispatch).regions)
    for (std::size_t c = 0; c < region.after.size(); ++c)
      if (region.after[c] != unset && region.after[c] != (region.before[c] == unset ? 0 : region.before[c])) ++count;
  return count;
}

WriterStatistics Writer::statistics() const {
  const ChunkStore::Counts counts = implementation_->store.counts();
  const std::lock_guard lock(implementation_->mutex);
  return {implementation_->raw_bytes, counts.stored_bytes, counts.zero, counts.duplicate, counts.stored};
}

void Writer::commit(Manifest manifest) {
  Implementation& im = *implementation_;
  im.wait_until_idle();
  if (manifest.dispatches.size() != im.dispatches.size())
    fail(ExitCode::usage, "the manifest has {} dispatches and {} were written", manifest.dispatches.size(),
         im.dispatches.size());
  for (std::size_t i = 0; i < im.dispatches.size(); ++i) {
    Dispatch& d = manifest.dispatches[i];
    if (im.dispatches[i].kernarg_checksum.empty()) set_kernarg(i, {});
    d.kernarg_checksum = im.dispatches[i].kernarg_checksum;
    d.kernarg_file = fmt::format("kernarg-{}.bin", i);
    d.pages_file = fmt::format("pages-{}.bin", i);
    im.write_pages(im.dispatches[i], im.folder.path() / d.pages_file);
  }
  manifest.chunk_files = im.store.finish();
  support::Json document = to_json(manifest);
  document["checksum"] = manifest_checksum(document);
  support::write_file_atomically(im.folder.path() / layout::manifest_name, support::dump_json(document));
  im.folder.commit();
}

}  // namespace kerncap::snapshot
