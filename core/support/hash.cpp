#include "core/support/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/support/error.h"

namespace kerncap::support {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      fail(ExitCode::environment, "OpenSSL offers no SHA-256 on this machine");
    }
  }
  void update(const void* data, std::size_t size) { EVP_DigestUpdate(context_.get(), data, size); }
  std::string hex() {
    std::array<unsigned char, 32> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    static constexpr char digits[] = "0123456789abcdef";
    std::string result;
    result.reserve(64);
    for (const unsigned char byte : digest) {
      result += digits[byte >> 4];
      result += digits[byte & 15];
    }
    return result;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

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

}  // namespace kerncap::support
