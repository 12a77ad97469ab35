#include "core/support/hash.h"
#include "core/support/xxh3_stream.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <cstdlib>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::support {
namespace {

// FIPS 180-2, appendix B.1, and the digest of the empty message.
TEST(Sha256, AgreesWithThePublishedVectors) {
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, StillWorksInExitHandlersThatRunAfterOpenSslHasGone) {
  EXPECT_EXIT(
      {
        std::atexit([] { std::_Exit(sha256_hex(bytes_of("abc")).starts_with("ba7816bf") ? 0 : 1); });
        ::OPENSSL_init_crypto(0, nullptr);  // registers OpenSSL's own exit handler after ours: it runs before
        std::exit(2);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Sha256, OfAFileEqualsThatOfItsBytes) {
  const TemporaryFolder folder;
  const std::string text(1000003, 'k');
  write_file_atomically(folder.path() / "f", text);
  EXPECT_EQ(sha256_hex_of_file(folder.path() / "f"), sha256_hex(bytes_of(text)));
  EXPECT_THROW(sha256_hex_of_file(folder.path() / "missing"), Error);
}

TEST(Xxh3, PiecesGiveTheHashOfTheWhole) {
  const std::string text(100001, 'a');
  Xxh3Stream stream;
  EXPECT_EQ(stream.digest(), xxh3_128({}));
  for (std::size_t at = 0; at < text.size(); at += 777) stream.update(bytes_of(std::string_view(text).substr(at, 777)));
  EXPECT_EQ(stream.digest(), xxh3_128(bytes_of(text)));
}

TEST(Xxh3, SeesASingleFlippedBit) {
  std::string text(65536, 'a');
  const Hash128 before = xxh3_128(bytes_of(text));
  const std::uint64_t before64 = xxh3_64(bytes_of(text));
  text[40000] ^= 1;
  EXPECT_NE(xxh3_128(bytes_of(text)), before);
  EXPECT_NE(xxh3_64(bytes_of(text)), before64);
}

}  // namespace
}  // namespace kerncap::support
