#include "replay/project.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::replay {
namespace {

class Project : public testing::Test {
 protected:
  support::TemporaryFolder folder_;
  std::filesystem::path write(const std::string& name, std::string_view text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    support::write_file_atomically(path, text);
    return path;
  }
};

TEST_F(Project, a_folder_with_a_manifest_is_a_snapshot) {
  write("manifest.json", "{}");
  EXPECT_EQ(resolve_input(folder_.path()).snapshot, folder_.path());
  EXPECT_TRUE(resolve_input(folder_.path()).project.empty());
}

TEST_F(Project, a_project_offers_what_it_has) {
  write("snapshot/manifest.json", "{}");
  Input input = resolve_input(folder_.path());
  EXPECT_EQ(input.snapshot, folder_.path() / "snapshot");
  EXPECT_FALSE(input.code_object);
  write("build/kernel.hsaco", "x");
  write("kernel.json", "{}");
  write("kerncap.toml", "");
  input = resolve_input(folder_.path());
  EXPECT_EQ(input.code_object, folder_.path() / "build/kernel.hsaco");
  EXPECT_TRUE(input.kernel_json && input.rules);
}

TEST_F(Project, anything_else_is_refused) { EXPECT_THROW(resolve_input(folder_.path()), support::Error); }

TEST_F(Project, rules_come_from_kerncap_toml) {
  const auto path = write("kerncap.toml", R"(
[project]
kernel = 'x'
[validate]
ulp = 4
relative = 1e-6
nan = "forbidden"
noise_runs = 3
[validate.argument.out]
absolute = 0.5
type = "double"
[validate.argument.3]
ignore = true
)");
  const ValidateRules rules = read_rules(path);
  EXPECT_EQ(rules.tolerance.ulps, 4u);
  EXPECT_EQ(rules.tolerance.relative, 1e-6);
  EXPECT_EQ(rules.tolerance.nan, NanPolicy::forbidden);
  EXPECT_EQ(rules.noise_runs, 3u);
  EXPECT_EQ(rules.arguments.at("out").absolute, 0.5);
  EXPECT_EQ(rules.arguments.at("out").type, ElementType::f64);
  EXPECT_TRUE(rules.arguments.at("3").ignore);
}

TEST_F(Project, a_misspelt_rule_is_refused) {
  EXPECT_THROW(read_rules(write("a.toml", "[validate]\nulps_allowed = 4\n")), support::Error);
  EXPECT_THROW(read_rules(write("b.toml", "[validate]\nulp = -4\n")), support::Error);
  EXPECT_THROW(read_rules(write("c.toml", "[validate.argument.x]\nulpp = 4\n")), support::Error);
  EXPECT_THROW(read_rules(write("d.toml", "[validate\n")), support::Error);
}

TEST_F(Project, rules_come_from_the_command_line) {
  ValidateRules rules;
  add_rule(rules, "rel=1e-3");
  add_rule(rules, "out:nan=same-bits");
  EXPECT_EQ(rules.tolerance.relative, 1e-3);
  EXPECT_EQ(rules.arguments.at("out").nan, NanPolicy::same_bits);
  for (const char* bad :
       {"", "ulp", "ulp=x", "ulp=-1", "rel=nan", "rel=inf", "nan=maybe", "type=float", "out:type=Thing", "ignore"}) {
    EXPECT_THROW(add_rule(rules, bad), support::Error) << bad;
  }
}

TEST_F(Project, kernel_json_gives_names_and_element_types) {
  const auto path = write("kernel.json", R"({"symbol": "k", "first_line": 3,
    "parameters": [{"index": 1, "name": "out", "type": "float *", "element": "float"}]})");
  const KernelSource source = read_kernel_json(path);
  EXPECT_EQ(source.first_line, 3u);
  ASSERT_EQ(source.parameters.size(), 1u);
  EXPECT_EQ(source.parameters[0].name, "out");
  EXPECT_EQ(source.parameters[0].element, "float");
  EXPECT_THROW(read_kernel_json(write("bad.json", R"({"symbol": "k", "parameters": [3]})")), support::Error);
  EXPECT_THROW(read_kernel_json(write("worse.json", "[]")), support::Error);
}

}  // namespace
}  // namespace kerncap::replay
