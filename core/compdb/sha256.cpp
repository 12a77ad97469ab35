#include "core/compdb/sha256.h"

// OpenSSL 3 deprecates the primitive in favour of EVP, which would fetch providers and read a configuration file first.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace kerncap::compdb {

std::string sha256_hex(std::string_view bytes) {
  SHA256_CTX context;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(digest, &context);
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : digest) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

}  // namespace kerncap::compdb
