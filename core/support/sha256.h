// SHA-256, in a library of its own (Kerncap::support_hash) without any other part of support, because kerncap-cc is
// static, starts before every compile of a build and hashes archived sources.
//
// It is OpenSSL's low-level interface on purpose. It has no state outside its context, while EVP's lives in tables that
// OpenSSL takes down by an exit handler of its own, and the capture library still hashes while a process exits; and it
// fetches no provider and reads no configuration file first, so that a static program of it starts at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kerncap::support {

class Sha256 {
 public:
  Sha256();
  void update(const void* data, std::size_t size);
  std::string hex();  // lower case, 64 characters; nothing may be added afterwards

 private:
  // OpenSSL's SHA256_CTX without its header, whose deprecation warnings users of this one should not see; the size is
  // checked where it is used.
  alignas(8) unsigned char context_[112];
};

std::string sha256_hex(std::string_view bytes);

}  // namespace kerncap::support
