// SHA-256 for the wrapper: the primitive alone of the library that core/support hashes with, because a static program
// that starts before every compile cannot afford the provider machinery behind EVP.
#pragma once

#include <string>
#include <string_view>

namespace kerncap::compdb {

std::string sha256_hex(std::string_view bytes);  // lower case

}  // namespace kerncap::compdb
