// The kernel, and the sum of the first COUNT floats that its first argument points to, before and after it.
// usage: sum SNAPSHOT COUNT
#include <kerncap/snapshot.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const kerncap::Snapshot snapshot(argv[1]);
  const kerncap::Snapshot::Dispatch& dispatch = snapshot.dispatch(0);
  const std::vector<std::byte> kernarg = snapshot.kernarg(0);
  std::uint64_t pointer = 0;
  std::memcpy(&pointer, kernarg.data() + dispatch.arguments.at(0).offset, sizeof pointer);
  std::cout << dispatch.kernel_name << '\n';
  for (const auto state : {kerncap::Snapshot::State::before, kerncap::Snapshot::State::after}) {
    std::vector<float> values(std::strtoul(argv[2], nullptr, 10));
    snapshot.read_address(0, state, pointer, values.data(), values.size() * sizeof(float));
    std::cout << std::accumulate(values.begin(), values.end(), 0.0) << '\n';
  }
  return 0;
} catch (const kerncap::SnapshotError& error) {
  std::cerr << error.what() << '\n';
  return error.kind() == kerncap::SnapshotError::Kind::damaged ? 4 : 2;
}
