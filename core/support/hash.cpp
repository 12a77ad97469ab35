#include "core/support/hash.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/support/error.h"
#include "core/support/sha256.h"
#include "core/support/xxh3_stream.h"

namespace kerncap::support {

std::string sha256_hex(Bytes data) {
  Sha256 hash;
  hash.update(data.data(), data.size());
  return hash.hex();
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(ExitCode::environment, "cannot read '{}': {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::vector<char> buffer(1 << 18);
  ssize_t got = 0;
  while ((got = ::read(fd, buffer.data(), buffer.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(fd);
      fail(ExitCode::environment, "cannot read '{}': {}", path.string(), std::strerror(error));
    }
    hash.update(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return hash.hex();
}

std::uint64_t xxh3_64(Bytes data) { return XXH3_64bits(data.data(), data.size()); }

Hash128 xxh3_128(Bytes data) {
  const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
  return {hash.high64, hash.low64};
}

struct Xxh3Stream::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr || XXH3_128bits_reset(state_->xxh) != XXH_OK)
    fail(ExitCode::environment, "not enough memory for a checksum");
}
Xxh3Stream::~Xxh3Stream() = default;
void Xxh3Stream::update(Bytes data) { XXH3_128bits_update(state_->xxh, data.data(), data.size()); }
Hash128 Xxh3Stream::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {hash.high64, hash.low64};
}

}  // namespace kerncap::support
