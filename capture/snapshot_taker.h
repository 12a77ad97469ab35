// Everything about one snapshot folder while it is being written: which regions there are, reading them, what the
// manifest says. Knows nothing of queues and gates. Used by the capturer's worker thread alone.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "capture/capturer.h"
#include "capture/code_pointers.h"
#include "capture/companion.h"
#include "capture/copier.h"
#include "capture/host_pages.h"
#include "capture/reachable.h"
#include "capture/session.h"
#include "core/snapshot/manifest.h"
#include "core/snapshot/writer.h"

namespace kerncap::capture {

class SnapshotTaker {
 public:
  explicit SnapshotTaker(Session& session);  // throws when the output may not be written
  ~SnapshotTaker();

  // Fills in everything that is known of the dispatch before a byte is copied; throws when it is too large.
  void begin(const Request& request, snapshot::Dispatch& dispatch);
  void read_before(snapshot::Dispatch& dispatch);
  void read_after(snapshot::Dispatch& dispatch);  // returns when the device's memory is no longer needed
  void add(snapshot::Dispatch dispatch);          // the dispatch is done with

  bool empty() const { return manifest_.dispatches.empty(); }
  snapshot::WriterStatistics commit();  // the snapshot has its name then

 private:
  const CodeDescription& description(const std::string& digest);
  void find_code(snapshot::Dispatch& dispatch, const Request& request);
  void find_regions(snapshot::Dispatch& dispatch, hsa_agent_t kernel_agent);
  void write_code(const snapshot::Dispatch& dispatch);
  std::vector<std::byte> read_kernarg(const snapshot::Dispatch& dispatch);
  void read(snapshot::Dispatch& dispatch, snapshot::State state, CodePointerFinder* pointers);
  void read_region(const snapshot::Dispatch& dispatch, std::size_t region, snapshot::State state,
                   CodePointerFinder* pointers, Reach* reach);
  void finish_reading(snapshot::Dispatch& dispatch, snapshot::State state);  // names what could not be read
  // Reads what pointers lead to and drops the other regions; returns those.
  std::vector<snapshot::NotCaptured> read_reachable(snapshot::Dispatch& dispatch, std::span<const std::byte> arguments,
                                                    CodePointerFinder& pointers);
  std::vector<snapshot::NotCaptured> keep_only(snapshot::Dispatch& dispatch,
                                               const std::function<bool(std::size_t region)>& wanted);
  void settle_host(const snapshot::Dispatch& d);  // host memory that changed since it was read is read again
  void progress(std::uint64_t bytes);

  Session& session_;
  const Agents& agents_;
  Copier copier_;  // released buffers: the writer goes first
  std::unique_ptr<snapshot::Writer> writer_;
  snapshot::Manifest manifest_;
  std::map<std::string, CodeDescription> descriptions_;
  std::map<std::string, LoadedCode> known_code_;  // by digest
  std::set<std::string> written_code_;
  std::vector<Source> sources_;                  // one for each region of the current dispatch
  HostPages host_pages_;                         // as they were read before the current dispatch
  std::vector<snapshot::NotCaptured> unstable_;  // what never stood still
  std::size_t number_ = 0;                       // of the current dispatch
  std::chrono::steady_clock::time_point published_{};
  std::uint64_t done_ = 0, total_ = 0;  // bytes of the current dispatch; the total grows with --scope reachable
};

}  // namespace kerncap::capture
