#include "core/snapshot/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/snapshot/test_data.h"
#include "core/support/error.h"

namespace kerncap::snapshot {
namespace {

using support::Error;
using support::Json;

Manifest full_manifest() {
  Manifest m = testing::small_manifest({});
  Region r = testing::region(0x7f0000000000, 4096);
  r.kind = RegionKind::registered;
  r.agent = -1;
  r.pool_flags = 2;
  r.allocation_flags = 1;
  r.host_address = 0x1234000;
  Region code = testing::region(0x7f0000200000, 8192);
  code.kind = RegionKind::code_object;
  code.code_object = std::string(64, 'a');
  Dispatch& d = m.dispatches[0];
  d.regions = {r, code};
  d.header = 0x1502;
  d.setup = 3;
  d.kernel_object = 0x7f0000200040;
  d.kernarg_address = 0x7f0000000100;
  d.private_segment_size = 5;
  d.group_segment_size = 6;
  d.index = 7;
  d.kernel_index = 8;
  d.process = 9;
  d.command_line = {"./app", "--n", "3"};
  d.device_time = 1234;
  d.kernel.arguments.push_back({"out", "float*", "global_buffer", 0, 8, "global", "write_only", true});
  d.kernel.required_workgroup_size = {64, 1, 1};
  d.kernel.vgprs = 12;
  d.loads.push_back({std::string(64, 'a'), 0, 0x7f0000200000, 8192, -4096});
  d.code_pointers.push_back({0x7f0000000008, std::string(64, 'a'), 0x40, "_Z3addPfS_i.kd"});
  d.code_pointers_complete = false;
  d.scope = Scope::reachable;
  d.visible_bytes = 1 << 20;
  d.coverage.push_back({"registered", 1, 4096});
  d.not_captured.push_back({0x5000, 16, "managed", "it is not mapped"});
  d.incomplete_reason = "";
  d.kernarg_file = "kernarg-0.bin";
  d.pages_file = "pages-0.bin";
  m.chunk_files = {"chunks/0000.pack"};
  return m;
}

Json parsed(const Manifest& m) { return support::parse_json(support::dump_json(to_json(m)), "test"); }

std::string refusal(const Json& document) {
  try {
    (void)manifest_from_json(document, "m");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), support::ExitCode::bad_input);
    return error.what();
  }
  return "accepted";
}

TEST(Manifest, SaysTheSameAfterWritingAndReading) {
  const Json written = parsed(full_manifest());
  const Manifest back = manifest_from_json(written, "test");
  EXPECT_EQ(parsed(back), written);
  const Dispatch& d = back.dispatches.at(0);
  EXPECT_EQ(d.loads.at(0).load_delta, -4096);
  EXPECT_EQ(d.regions.at(0).kind, RegionKind::registered);
  EXPECT_EQ(d.regions.at(0).host_address, 0x1234000u);
  EXPECT_EQ(d.kernel, full_manifest().dispatches[0].kernel);
  EXPECT_EQ(d.device_time, 1234u);
  EXPECT_EQ(d.scope, Scope::reachable);
  EXPECT_EQ(d.visible_bytes, 1u << 20);
  EXPECT_FALSE(d.code_pointers_complete);
}

TEST(Manifest, KindsOfMemoryHaveOneNameEach) {
  for (int i = 0; i <= static_cast<int>(RegionKind::code_object); ++i)
    EXPECT_EQ(region_kind(to_string(static_cast<RegionKind>(i))), static_cast<RegionKind>(i));
  EXPECT_FALSE(region_kind("nonsense"));
}

TEST(Manifest, ANewerSchemaIsRefusedPolitely) {
  Json document = parsed(full_manifest());
  document["schema"] = "kerncap.snapshot/3";
  EXPECT_THAT(refusal(document), ::testing::HasSubstr("use a newer Kerncap"));
  document["schema"] = "other";
  EXPECT_THAT(refusal(document), ::testing::HasSubstr("not a Kerncap snapshot"));
}

TEST(Manifest, TheFirstVersionIsStillRead) {
  Json document = parsed(full_manifest());
  document["schema"] = "kerncap.snapshot/1";
  for (Json& dispatch : document["dispatches"]) {
    dispatch.erase("scope");
    dispatch.erase("visible_bytes");
  }
  const Manifest m = manifest_from_json(document, "m");
  EXPECT_EQ(m.dispatches.at(0).scope, Scope::everything);
  EXPECT_EQ(m.dispatches.at(0).visible_bytes, 4096u + 8192u);
}

TEST(Manifest, EveryMissingMemberIsRefused) {
  const Json good = parsed(full_manifest());
  for (const auto& [key, value] : good.items()) {
    Json document = good;
    document.erase(key);
    EXPECT_NE(refusal(document), "accepted") << key;
  }
  for (const auto& [key, value] : good["dispatches"][0].items()) {
    Json document = good;
    document["dispatches"][0].erase(key);
    EXPECT_NE(refusal(document), "accepted") << key;
  }
}

TEST(Manifest, HostileValuesAreRefused) {
  const Json good = parsed(full_manifest());
  const auto with = [&](const char* pointer, const Json& value) {
    Json document = good;
    document[Json::json_pointer(pointer)] = value;
    return refusal(document);
  };
  EXPECT_THAT(with("/dispatches/0/pages_file", "../outside"), ::testing::HasSubstr("leaves the snapshot's folder"));
  EXPECT_THAT(with("/dispatches/0/kernarg_file", "/etc/passwd"), ::testing::HasSubstr("leaves the snapshot's folder"));
  EXPECT_THAT(with("/chunk_files/0", "a/../../b"), ::testing::HasSubstr("leaves the snapshot's folder"));
  EXPECT_NE(with("/dispatches/0/regions/0/size", "0xffffffffffffffff"), "accepted");
  EXPECT_NE(with("/dispatches/0/regions/0/size", 0), "accepted");
  EXPECT_NE(with("/dispatches/0/regions/0/size", -1), "accepted");
  EXPECT_NE(with("/dispatches/0/regions/0/agent", 1), "accepted");
  EXPECT_NE(with("/dispatches/0/agent", -1), "accepted");
  EXPECT_NE(with("/dispatches/0/loads/0/digest", "../../x"), "accepted");
  EXPECT_NE(with("/dispatches/0/packet/header", 70000), "accepted");
  EXPECT_NE(with("/dispatches/0/packet/grid", Json::array({1, 2})), "accepted");
  EXPECT_NE(with("/dispatches/0/kernel/required_workgroup_size", Json::array({1})), "accepted");
  EXPECT_THAT(with("/dispatches/0/regions/1/address", "0x7f0000000800"), ::testing::HasSubstr("overlaps"));
  EXPECT_NE(with("/dispatches/0/scope", "some"), "accepted");
  EXPECT_NE(with("/chunk_size", 4096), "accepted");
}

}  // namespace
}  // namespace kerncap::snapshot
