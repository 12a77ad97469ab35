// Writes the fuzzer's seeds: one whole file of each kind. usage: snapshot_seeds FOLDER
#include <fstream>

#include "core/snapshot/layout.h"
#include "core/snapshot/writer.h"
#include "core/support/file.h"

int main(int argc, char** argv) {
  using namespace kerncap;
  using namespace kerncap::snapshot;
  if (argc != 2) return 2;
  const support::TemporaryFolder folder;
  std::vector<Region> regions(2);
  regions[0].address = 0x10000;
  regions[0].size = 3 * chunk_size + 5;
  regions[1].address = 0x900000;
  regions[1].size = 100;
  {
    Writer writer(folder.path() / "s.kcap", {.threads = 1, .sync = false});
    std::vector<std::byte> bytes(regions[0].size, std::byte{3});
    const auto d = writer.begin_dispatch(regions);
    writer.put(d, 0, State::before, 0, bytes, {});
    writer.drain();
    bytes[7] = std::byte{4};
    writer.put(d, 0, State::after, 0, bytes, {});
    Manifest m;
    m.agents.emplace_back();
    Dispatch& dispatch = m.dispatches.emplace_back();
    dispatch.code_object = std::string(64, 'a');
    dispatch.regions = regions;
    dispatch.has_after = true;
    writer.commit(m);
  }
  const char* names[] = {layout::manifest_name, layout::index_name, "pages-0.bin"};
  for (int kind = 0; kind < 3; ++kind)
    std::ofstream(std::filesystem::path(argv[1]) / ("seed" + std::to_string(kind)), std::ios::binary)
        << static_cast<char>(kind) << support::read_text_file(folder.path() / "s.kcap" / names[kind]);
  return 0;
}
