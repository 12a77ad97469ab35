// core/support/sha256.h with libmd's SHA-256: OpenSSL's asks the processor a dozen questions at each start, which in a
// virtual machine take longer than the rest of the start.
#include <sys/types.h>

#include <sha2.h>

#include "core/support/sha256.h"

namespace kerncap::support {

std::string sha256_hex(std::string_view bytes) {
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &context);
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace kerncap::support
