#include "core/support/sha256.h"

#define OPENSSL_SUPPRESS_DEPRECATED  // see sha256.h
#include <openssl/sha.h>

namespace kerncap::support {
namespace {

SHA256_CTX* context_in(unsigned char* bytes) { return static_cast<SHA256_CTX*>(static_cast<void*>(bytes)); }

}  // namespace

Sha256::Sha256() {
  static_assert(sizeof context_ == sizeof(SHA256_CTX) && alignof(SHA256_CTX) <= 8);
  SHA256_Init(context_in(context_));
}

void Sha256::update(const void* data, std::size_t size) { SHA256_Update(context_in(context_), data, size); }

std::string Sha256::hex() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Final(digest, context_in(context_));
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * sizeof digest);
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

}  // namespace kerncap::support
