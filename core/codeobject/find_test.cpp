#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>
#include <random>

#include "core/codeobject/bundle.h"
#include "core/codeobject/code_object.h"
#include "core/codeobject/fixture_for_test.h"
#include "core/codeobject/target_id.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "core/support/process.h"

namespace kerncap::codeobject {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> targets(const std::vector<FoundCodeObject>& found) {
  std::vector<std::string> result;
  for (const auto& each : found) result.push_back(each.target);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::string> digests(const std::vector<FoundCodeObject>& found) {
  std::vector<std::string> result;
  for (const auto& each : found) result.push_back(each.digest);
  return result;
}

std::vector<FoundCodeObject> find_in_fixture(const std::string& name) {
  return find_code_objects(as_bytes(fixture_text(name)), name);
}

bool runs(std::vector<std::string> argv) {
  support::Command command;
  command.argv = std::move(argv);
  return support::run(command).succeeded();
}

struct Case {
  const char* file;
  Container container;
  bool bitcode;
};

class EveryContainer : public testing::TestWithParam<Case> {};

TEST_P(EveryContainer, YieldsOneEntryPerArchitecture) {
  const auto& expected = GetParam();
  if (!std::filesystem::exists(fixture(expected.file))) GTEST_SKIP() << "its compiler is not installed";
  const auto found = find_in_fixture(expected.file);
  EXPECT_THAT(targets(found), ElementsAre("gfx1030", "gfx90a:xnack+"));
  for (const auto& each : found) {
    EXPECT_EQ(each.container, expected.container);
    EXPECT_EQ(each.is_bitcode, expected.bitcode);
    EXPECT_EQ(each.digest, support::sha256_hex(each.bytes));
    if (!each.is_bitcode) {
      EXPECT_EQ(parse_code_object(each.bytes, expected.file).target, each.target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objects, EveryContainer,
                         testing::Values(Case{"plain15.o", Container::offload_bundle, false},
                                         Case{"plain19.o", Container::offload_bundle, false},
                                         Case{"hipcc.o", Container::offload_bundle, false},
                                         Case{"newdriver19.o", Container::offload_bundle, false},
                                         Case{"compressed19.o", Container::compressed_bundle, false},
                                         Case{"rdc15.o", Container::rdc_section, true},
                                         Case{"rdc19.o", Container::rdc_section, true},
                                         Case{"newrdc15.o", Container::llvm_offloading, true},
                                         Case{"newrdc19.o", Container::llvm_offloading, true}),
                         [](const auto& parameter) {
                           std::string name = parameter.param.file;
                           return name.substr(0, name.find('.'));
                         });

class LinkedFile : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LinkedFile, HoldsTheCodeObjectsOfItsObjectsUnchanged) {
  const auto [first, second] = GetParam();
  if (!std::filesystem::exists(fixture(first))) GTEST_SKIP() << "its compiler is not installed";
  support::TemporaryFolder folder;
  const auto library = folder.path() / "linked.so";
  ASSERT_TRUE(runs({"cc", "-shared", "-Wl,--unresolved-symbols=ignore-all", "-o", library.string(),
                    fixture(first).string(), fixture(second).string()}));
  auto expected = digests(find_in_fixture(first));
  for (const auto& digest : digests(find_in_fixture(second))) expected.push_back(digest);
  support::MappedFile file(library);
  EXPECT_EQ(digests(find_code_objects(file.bytes(), "linked.so")), expected);
  EXPECT_EQ(expected.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Bundles, LinkedFile,
                         testing::Values(std::pair{"plain15.o", "other15.o"}, std::pair{"plain19.o", "other19.o"},
                                         std::pair{"compressed19.o", "othercompressed19.o"},
                                         std::pair{"plain19.o", "othercompressed19.o"}));

TEST(FindCodeObjects, LooksIntoArchiveMembers) {
  support::TemporaryFolder folder;
  const auto archive = folder.path() / "lib.a";
  ASSERT_TRUE(runs({"ar", "rc", archive.string(), fixture("plain15.o").string(), fixture("other15.o").string()}));
  support::MappedFile file(archive);
  EXPECT_EQ(find_code_objects(file.bytes(), "lib.a").size(), 4u);
}

TEST(FindCodeObjects, TakesARawCodeObject) {
  const auto inner = find_in_fixture("plain15.o").at(0);
  const auto found = find_code_objects(inner.bytes, "kernels.hsaco");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].container, Container::raw);
  EXPECT_EQ(found[0].digest, inner.digest);
  EXPECT_EQ(found[0].target, inner.target);
}

TEST(FindCodeObjects, FindsNothingInFilesWithoutDeviceCode) {
  EXPECT_TRUE(find_code_objects({}, "empty").empty());
  EXPECT_TRUE(find_code_objects(as_bytes(std::string("int main() {}\n")), "main.c").empty());
  support::MappedFile self("/proc/self/exe");
  EXPECT_TRUE(find_code_objects(self.bytes(), "host program").empty());
}

std::string section_text(const std::string& name) {
  // The bundle of an object: from the magic to the end of the file is enough for the reader.
  const std::string text = fixture_text(name);
  const auto start = text.find(bundle_magic);
  const auto end = text.find(".hipFatBinSegment", start);
  return text.substr(start, end - start);
}

// The three layouts as clang/docs/ClangOffloadBundler.rst gives them.
std::string compressed(unsigned version, const std::string& plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  std::string header = "CCOB";
  const auto put = [&](std::uint64_t value, int size) { header.append(reinterpret_cast<const char*>(&value), size); };
  put(version, 2);
  put(1, 2);
  if (version == 2) put(24 + packed.size(), 4);
  if (version == 3) put(32 + packed.size(), 8);
  put(plain.size(), version == 3 ? 8 : 4);
  put(0, 8);
  return header + packed;
}

TEST(FindCodeObjects, UnpacksAllVersionsOfCompressedBundles) {
  const std::string plain = section_text("plain15.o");
  const auto expected = digests(find_in_fixture("plain15.o"));
  for (unsigned version : {1u, 2u, 3u}) {
    std::string two = compressed(version, plain);
    two.resize((two.size() + 4095) / 4096 * 4096);
    two += compressed(version, plain);
    const auto found = digests(find_code_objects(as_bytes(two), "ccob"));
    ASSERT_EQ(found.size(), 4u) << "version " << version;
    EXPECT_EQ(found[0], expected[0]);
    EXPECT_EQ(found[3], expected[1]);
  }
}

TEST(FindCodeObjects, RefusesACompressedBundleOfAnUnknownVersion) {
  const std::string file = compressed(9, std::string(100, 'x'));
  try {
    find_code_objects(as_bytes(file), "future.o");
    FAIL();
  } catch (const support::Error& error) {
    EXPECT_EQ(error.code(), support::ExitCode::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("version 9"));
  }
}

TEST(FindCodeObjects, RefusesABundleThatClaimsToUnpackToGigabytes) {
  std::string file = compressed(3, std::string(100, 'x'));
  const std::uint64_t huge = std::uint64_t{1} << 62;
  std::memcpy(file.data() + 16, &huge, 8);
  EXPECT_THROW(find_code_objects(as_bytes(file), "bomb"), support::Error);
}

TEST(FindCodeObjects, RefusesABundleEntryThatPointsOutside) {
  std::string file = section_text("plain15.o");
  const std::uint64_t outside = UINT64_MAX - 4;
  std::memcpy(file.data() + 32, &outside, 8);
  EXPECT_THROW(find_code_objects(as_bytes(file), "hostile"), support::Error);
}

// Whatever the damage: either an answer or Error{bad_input}, never a crash (run under the sanitizers as well).
TEST(FindCodeObjects, SurvivesRandomDamageAndTruncation) {
  std::mt19937 random(7);
  for (const char* name : {"plain15.o", "compressed19.o", "rdc15.o", "newrdc19.o"}) {
    if (!std::filesystem::exists(fixture(name))) continue;
    const std::string whole = fixture_text(name);
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
      std::string damaged = whole;
      if (round % 3 == 0) damaged.resize(random() % damaged.size());
      for (int i = 0; i < 1 + round % 8 && !damaged.empty(); ++i) damaged[random() % damaged.size()] = char(random());
      try {
        for (const auto& found : find_code_objects(as_bytes(damaged), name))
          if (!found.is_bitcode) parse_code_object(found.bytes, name);
      } catch (const support::Error& error) {
        EXPECT_EQ(error.code(), support::ExitCode::bad_input);
        ++refused;
      }
    }
    EXPECT_GT(refused, 0) << name;
  }
}

TEST(TargetId, IsTheSameForEverySpellingOfAnEntry) {
  EXPECT_EQ(target_of_entry("hipv4-amdgcn-amd-amdhsa--gfx90a"), "gfx90a");
  EXPECT_EQ(target_of_entry("hip-amdgcn-amd-amdhsa-gfx90a"), "gfx90a");
  EXPECT_EQ(target_of_entry("hip-amdgcn-amd-amdhsa--gfx90a-"), "gfx90a");
  EXPECT_EQ(target_of_entry("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+:sramecc-"), "gfx90a:sramecc-:xnack+");
  EXPECT_EQ(target_of_entry("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic"), "gfx9-4-generic");
  EXPECT_EQ(target_of_entry("hip-spirv64-amd-amdhsa--amdgcnspirv"), "amdgcnspirv");
  EXPECT_TRUE(is_host_entry("host-x86_64-unknown-linux--"));
}

}  // namespace
}  // namespace kerncap::codeobject
