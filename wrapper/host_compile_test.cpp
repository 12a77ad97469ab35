// Host compiles and links through kerncap-cc: clang, gcc and nvcc, response files, spellings, caches, modes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wrapper/build_for_test.h"

namespace kerncap::wrapper {
namespace {

using compdb::Record;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HostCompile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { KERNCAP_NEEDS(GetParam()); }
  std::string compiler() const { return GetParam(); }
  bool is_clang() const { return compiler().find("clang") != std::string::npos; }
  BuildTree tree;
};

TEST_P(HostCompile, a_unit_knows_its_files_and_its_output) {
  tree.compile({compiler(), "-MD", "-c", "c.c", "-o", "c.o"});
  const Record unit = tree.unit();
  EXPECT_EQ(unit.language, "c");
  EXPECT_EQ(unit.directory, tree.path().string());
  EXPECT_EQ(unit.output, (tree.path() / "c.o").string());
  EXPECT_EQ(unit.output_size, std::filesystem::file_size(tree.path() / "c.o"));
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("c.c", "c.h"));
  EXPECT_THAT(unit.jobs, SizeIs(is_clang() ? 1 : 0));
  EXPECT_EQ(unit.compiler.family, is_clang() ? "clang" : "gcc");
  EXPECT_THAT(tree.database().find_header(tree.path() / "c.h"), SizeIs(1));
  EXPECT_THAT(tree.database().find_source(tree.path() / "c.c"), SizeIs(1));
  EXPECT_THAT(tree.database().find_output(tree.path() / "c.o"), SizeIs(1));
}

TEST_P(HostCompile, queries_and_preprocessing_leave_no_record) {
  for (const Words& arguments :
       {Words{"--version"}, Words{"-v"}, Words{"-print-search-dirs"}, Words{"-dumpmachine"}, Words{"-E", "c.c"},
        Words{"-M", "c.c"}, Words{"-MM", "c.c"}, Words{"-###", "-c", "c.c"}}) {
    Words command = {compiler()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const support::ProcessResult plain = tree.run(command);
    command.insert(command.begin(), program);
    const support::ProcessResult wrapped = tree.run(command);
    EXPECT_EQ(wrapped.standard_output, plain.standard_output);
    EXPECT_EQ(wrapped.exit_status, plain.exit_status);
  }
  EXPECT_THAT(tree.database().records(), IsEmpty());
}

TEST_P(HostCompile, outputs_depfiles_and_messages_are_the_same_byte_for_byte) {
  for (const Words& extra :
       {Words{"-c"}, Words{"-c", "-g", "-O2"}, Words{"-c", "-MMD"}, Words{"-c", "-MD", "-MP"}, Words{"-S"},
        Words{"-c", "-Wp,-MMD,out.d"}, Words{"-c", "-flto", "-frandom-seed=1"}, Words{}}) {
    Words command = {compiler(), "c.c", "main.c"};
    if (!extra.empty()) command.pop_back();
    if (extra.empty()) command.insert(command.end(), {"-o", "out"});
    if (!extra.empty()) command.insert(command.end(), {"-o", "out.o"});
    command.insert(command.end(), extra.begin(), extra.end());
    const auto outcome = [&](const support::ProcessResult& result) {
      std::string all = std::to_string(result.exit_status) + result.standard_output + result.standard_error;
      for (const char* name : {"out", "out.o", "out.d"}) {
        if (tree.exists(name)) all += tree.read(name);
        std::filesystem::remove(tree.path() / name);
      }
      return all;
    };
    const std::string plain = outcome(tree.run(command, {{"SOURCE_DATE_EPOCH", "1"}}));
    command.insert(command.begin(), program);
    EXPECT_EQ(outcome(tree.run(command, {{"SOURCE_DATE_EPOCH", "1"}})), plain) << support::shell_quoted(command);
  }
}

TEST_P(HostCompile, outputs_are_found_in_each_spelling) {
  tree.compile({compiler(), "-c", "c.c", "-ojoined.o"});
  tree.compile({compiler(), "-c", "c.c"});
  tree.compile({compiler(), "-S", "c.c", "-o", "-"});
  Words outputs;
  for (const Record& unit : tree.units()) outputs.push_back(std::filesystem::path(unit.output).filename().string());
  EXPECT_THAT(outputs, ElementsAre("joined.o", "c.o", ""));
}

TEST_P(HostCompile, one_source_in_two_targets_is_two_units) {
  tree.compile({compiler(), "-DA", "-c", "c.c", "-o", "./one.o"});
  tree.compile({compiler(), "-DB", "-c", "c.c", "-o", "two.o"});
  EXPECT_THAT(tree.units(), SizeIs(2));
  EXPECT_THAT(tree.database().find_source(tree.path() / "c.c"), SizeIs(2));
}

TEST_P(HostCompile, a_later_compile_replaces_the_earlier_one) {
  tree.compile({compiler(), "-DOLD", "-c", "c.c"});
  tree.compile({compiler(), "-DNEW", "-c", "c.c"});
  EXPECT_THAT(tree.unit().argv, Contains("-DNEW"));
  EXPECT_EQ(tree.database().statistics().superseded, 1U);
}

TEST_P(HostCompile, a_failed_compile_is_marked_and_keeps_the_good_record) {
  tree.compile({compiler(), "-c", "c.c"});
  EXPECT_EQ(tree.run({program, compiler(), "-DSIX=*", "-Werror", "-c", "c.c"}).exit_status, 1);
  const Record unit = tree.unit();
  EXPECT_EQ(unit.exit_status, 0);
  EXPECT_EQ(tree.database().statistics().failed, 1U);
}

TEST_P(HostCompile, response_files_are_inlined_because_they_are_deleted_afterwards) {
  tree.write("outer.rsp", "-c @inner.rsp");
  tree.write("inner.rsp", "\"-DTEXT=\\\"two words\\\"\" c.c -o rsp.o");
  tree.compile({compiler(), "@outer.rsp"});
  std::filesystem::remove(tree.path() / "outer.rsp");
  const Record unit = tree.unit();
  EXPECT_THAT(unit.argv, ElementsAre(compiler(), "@outer.rsp"));
  EXPECT_THAT(unit.expanded_argv, ElementsAre(compiler(), "-c", "-DTEXT=\"two words\"", "c.c", "-o", "rsp.o"));
}

TEST_P(HostCompile, odd_characters_in_arguments_and_names_survive) {
  const std::string odd = "o dd$x'y\"z\n\xff.c";
  tree.write(odd, "int odd;\n");
  tree.compile({compiler(), "-DQ=\"a b\"$c\\'", "-c", odd, "-o", odd + ".o"});
  const Record unit = tree.unit();
  EXPECT_EQ(unit.source, odd);
  EXPECT_EQ(unit.output, (tree.path() / (odd + ".o")).string());
  EXPECT_THAT(unit.argv, Contains("-DQ=\"a b\"$c\\'"));
  EXPECT_NE(unit.output_size, 0U);
}

TEST_P(HostCompile, an_argument_that_only_looks_like_a_response_file_is_literal) {
  tree.write("@odd.c", "int odd;\n");
  tree.compile({compiler(), "-c", "./@odd.c", "-o", "odd.o"});
  EXPECT_EQ(tree.unit().source, "./@odd.c");
}

TEST_P(HostCompile, links_know_what_went_in) {
  tree.compile({compiler(), "-c", "c.c"});
  tree.compile({compiler(), "-c", "main.c"});
  tree.compile({compiler(), "main.o", "c.o", "-o", "app"});
  ASSERT_THAT(tree.links(), SizeIs(1));
  EXPECT_THAT(tree.links()[0].inputs, ElementsAre((tree.path() / "main.o").string(), (tree.path() / "c.o").string()));
  EXPECT_EQ(tree.links()[0].output, (tree.path() / "app").string());
}

TEST_P(HostCompile, the_environment_that_steers_compilers_is_kept_and_the_rest_is_not) {
  tree.write("env/from_env.h", "#define FROM_ENV 1\n");
  tree.write("e.c", "#include <from_env.h>\nint e = FROM_ENV;\n");
  tree.compile({compiler(), "-MD", "-c", "e.c"}, {{"CPATH", (tree.path() / "env").string()}, {"SECRET_TOKEN", "x"}});
  const Record unit = tree.unit();
  EXPECT_THAT(unit.environment, Contains(std::pair<std::string, std::string>("CPATH", (tree.path() / "env").string())));
  for (const auto& [name, value] : unit.environment) EXPECT_NE(name, "SECRET_TOKEN");
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("e.c", "from_env.h"));
}

TEST_P(HostCompile, a_compiler_under_another_name_is_recognised_by_what_it_is) {
  std::filesystem::create_symlink(*support::find_program(compiler()), tree.path() / "my-cc");
  tree.compile({"./my-cc", "-MD", "-c", "c.c"});
  const Record unit = tree.unit();
  EXPECT_EQ(unit.compiler.family, is_clang() ? "clang" : "gcc");
  EXPECT_EQ(unit.compiler.path, (tree.path() / "my-cc").string());
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("c.c", "c.h"));
}

TEST_P(HostCompile, precompiled_headers_are_units_and_their_use_is_seen) {
  tree.write("p.h", "#define P 1\n");
  tree.write("p.c", "#include \"p.h\"\nint p = P;\n");
  const std::string output = is_clang() ? "p.pch" : "p.h.gch";
  tree.compile({compiler(), "-x", "c-header", "p.h", "-o", output});
  if (is_clang()) {
    tree.compile({compiler(), "-include-pch", output, "-c", "p.c"});
  } else {
    tree.compile({compiler(), "-include", "p.h", "-c", "p.c"});
  }
  const std::vector<Record> units = tree.units();
  ASSERT_THAT(units, SizeIs(2));
  EXPECT_EQ(units[0].output, (tree.path() / output).string());
  EXPECT_THAT(units[1].argv, Contains(is_clang() ? "-include-pch" : "-include"));
}

INSTANTIATE_TEST_SUITE_P(Compilers, HostCompile, ::testing::Values("gcc", "clang-15", "clang-19"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

class ClangCompile : public ::testing::Test {
 protected:
  void SetUp() override { KERNCAP_NEEDS("clang-15"); }
  BuildTree tree;
};

TEST_F(ClangCompile, options_that_come_from_elsewhere_are_in_the_job) {
  tree.write("extra.cfg", "-DFROM_CONFIG=1\n");
  tree.compile({"clang-15", "--config", (tree.path() / "extra.cfg").string(), "-c", "c.c"},
               {{"CCC_OVERRIDE_OPTIONS", "# +-DFROM_OVERRIDE=1"}});
  ASSERT_THAT(tree.unit().jobs, SizeIs(1));
  EXPECT_THAT(tree.unit().jobs[0].argv, AllOf(Contains("FROM_CONFIG=1"), Contains("FROM_OVERRIDE=1")));
}

TEST_F(ClangCompile, the_working_directory_option_moves_everything) {
  tree.write("sub/w.c", "#include \"w.h\"\nint w;\n");
  tree.write("sub/w.h", "\n");
  tree.compile({"clang-15", "-working-directory", (tree.path() / "sub").string(), "-c", "w.c", "-o", "w.o"});
  const Record unit = tree.unit();
  EXPECT_EQ(unit.directory, (tree.path() / "sub").string());
  EXPECT_EQ(unit.output, (tree.path() / "sub/w.o").string());
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("w.c", "w.h"));
}

TEST_F(ClangCompile, the_users_own_logs_are_left_to_him) {
  const std::string log = (tree.path() / "mine.log").string();
  tree.compile({"clang-15", "-MD", "-c", "c.c"}, {{"CC_PRINT_OPTIONS", "1"}, {"CC_PRINT_OPTIONS_FILE", log}});
  EXPECT_THAT(tree.read("mine.log"), ::testing::HasSubstr("\"-cc1\""));
  const Record unit = tree.unit();
  EXPECT_THAT(unit.jobs, IsEmpty());
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("c.c", "c.h"));
}

TEST_F(ClangCompile, what_verbose_options_show_is_still_shown) {
  for (const char* option : {"-v", "-H"}) {
    const std::string direct = tree.run({"clang-15", option, "-c", "c.c"}).standard_error;
    EXPECT_EQ(tree.run({program, "clang-15", option, "-c", "c.c"}).standard_error, direct) << option;
    EXPECT_THAT(direct, ::testing::HasSubstr(option[1] == 'v' ? "-cc1" : "c.h"));
    EXPECT_THAT(own_files(tree.unit(), "host"), ::testing::Contains("c.c")) << option;
  }
}

TEST_F(ClangCompile, a_symlinked_header_keeps_its_spelling_beside_where_it_leads) {
  tree.write("real/l.h", "#define L 1\n");
  std::filesystem::create_directory_symlink("real", tree.path() / "link");
  tree.write("l.c", "#include \"link/l.h\"\nint l = L;\n");
  tree.compile({"clang-15", "-c", "l.c"});
  const Record unit = tree.unit();
  ASSERT_THAT(unit.files, SizeIs(2));
  EXPECT_EQ(unit.files[1].spelling, "./link/l.h");
  EXPECT_EQ(unit.files[1].path, (tree.path() / "real/l.h").string());
}

TEST_F(ClangCompile, moved_build_trees_still_find_their_outputs) {
  const support::TemporaryFolder folder;
  const std::filesystem::path old_place = folder.path() / "old", new_place = folder.path() / "new";
  std::filesystem::create_directories(old_place);
  compdb::create_database(old_place / ".kerncap");
  support::write_file_atomically(old_place / "m.c", "int m;\n", 0644);
  support::Command command;
  command.argv = {program, "clang-15", "-c", "m.c"};
  command.working_directory = old_place;
  command.environment["KERNCAP_DB"] = std::nullopt;
  ASSERT_EQ(support::run(command).exit_status, 0);
  std::filesystem::rename(old_place, new_place);
  const auto matches = compdb::Database(new_place / ".kerncap").find_output(new_place / "m.o");
  ASSERT_THAT(matches, SizeIs(1));
  EXPECT_FALSE(matches[0].stale);
}

TEST_F(ClangCompile, archived_sources_outlive_edits) {
  const std::string before = tree.read("c.h");
  tree.compile({"clang-15", "-c", "c.c"}, {{"KERNCAP_SOURCES", "archive"}});
  tree.write("c.h", "#define SIX 7\n");
  const compdb::Database database = tree.database();
  std::map<std::string, std::string> kept;
  for (const compdb::SourceFile& file : tree.unit().files) {
    EXPECT_EQ(file.digest.empty(), file.system);
    if (!file.digest.empty()) kept[std::filesystem::path(file.path).filename()] = database.blob(file.digest);
  }
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_EQ(kept["c.h"], before);
  const compdb::VerifyReport report = compdb::verify(tree.database_path());
  EXPECT_TRUE(report.good());
  EXPECT_EQ(report.blobs, 2U);
  EXPECT_THAT(report.remarks, Contains(::testing::HasSubstr("c.h has changed")));
  std::filesystem::remove_all(tree.database_path() / "blobs");
  EXPECT_FALSE(compdb::verify(tree.database_path()).good());
}

TEST_F(ClangCompile, clang_tidy_and_clangd_accept_the_export) {
  KERNCAP_NEEDS("clang-tidy-19");
  KERNCAP_NEEDS("clangd-19");
  KERNCAP_NEEDS("hipcc");
  tree.compile({"clang-15", "-DQ=\"a b\"", "-c", "c.c"});
  tree.compile({"hipcc", "-nogpuinc", "-nogpulib", "--offload-arch=gfx90a", "-c", "a.hip"});
  EXPECT_EQ(compdb::export_compile_commands(tree.database_path(), tree.path() / "compile_commands.json", {}), 2U);
  for (const char* file : {"c.c", "a.hip"}) {
    const support::ProcessResult tidy =
        tree.run({"clang-tidy-19", "--checks=-*,misc-definitions-in-headers", "-p", ".", file});
    EXPECT_EQ(tidy.exit_status, 0) << tidy.standard_output << tidy.standard_error;
    const support::ProcessResult clangd =
        tree.run({"clangd-19", "--check=" + std::string(file), "--compile-commands-dir=."});
    EXPECT_EQ(clangd.exit_status, 0) << clangd.standard_error;
  }
}

TEST(Nvcc, a_cuda_compile_is_recorded_from_its_arguments) {
  KERNCAP_NEEDS("nvcc");
  const BuildTree tree;
  tree.write("k.cu", "__global__ void k(int* p) { *p = 1; }\n");
  const support::ProcessResult plain = tree.run({"nvcc", "-c", "k.cu", "-o", "k.o"});
  if (plain.exit_status != 0) GTEST_SKIP() << "nvcc does not work here: " << plain.standard_error;
  tree.compile({"nvcc", "-MD", "-c", "k.cu", "-o", "k.o"});
  const Record unit = tree.unit();
  EXPECT_EQ(unit.compiler.family, "nvcc");
  EXPECT_EQ(unit.language, "cuda");
  EXPECT_EQ(unit.source, "k.cu");
  EXPECT_NE(unit.output_size, 0U);
}

// --- compiler caches
class Ccache : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNCAP_NEEDS("ccache");
    KERNCAP_NEEDS("clang-15");
    cache["CCACHE_DIR"] = (tree.path() / "ccache").string();
    for (const char* name : {"CCACHE_DISABLE", "CCACHE_READONLY", "CCACHE_RECACHE", "CCACHE_CONFIGPATH"})
      cache[name] = std::nullopt;
  }
  BuildTree tree;
  Variables cache;
};

TEST_F(Ccache, a_hit_reuses_what_the_miss_recorded) {
  tree.compile({"ccache", "clang-15", "-c", "c.c", "-o", "c.o"}, cache);
  const Record miss = tree.unit();
  EXPECT_THAT(miss.argv.front(), "clang-15");
  EXPECT_THAT(miss.jobs, SizeIs(1));
  EXPECT_THAT(own_files(miss, "host"), ElementsAre("c.c", "c.h"));
  std::filesystem::remove(tree.path() / "c.o");
  tree.compile({"ccache", "clang-15", "-c", "c.c", "-o", "c.o"}, cache);
  const Record hit = tree.unit();
  EXPECT_EQ(hit.jobs.size(), 1U);
  EXPECT_THAT(own_files(hit, "host"), ElementsAre("c.c", "c.h"));
  EXPECT_FALSE(tree.database().find_output(tree.path() / "c.o").at(0).stale);
  EXPECT_EQ(tree.database().statistics().records, 2U);
}

TEST_F(Ccache, a_hit_without_an_earlier_record_is_recovered_by_a_dry_run) {
  Words command = {"ccache", "clang-15", "-c", "c.c", "-o", "c.o"};
  ASSERT_EQ(tree.run(command, cache).exit_status, 0);
  tree.compile(command, cache);
  Record unit = tree.unit();
  EXPECT_TRUE(unit.cached);
  EXPECT_THAT(unit.jobs, IsEmpty());
  std::string reason;
  ASSERT_TRUE(compdb::recover_jobs(unit, &reason)) << reason;
  EXPECT_THAT(unit.jobs, SizeIs(1));
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("c.c", "c.h"));
}

TEST_F(Ccache, in_front_of_the_wrapper_a_hit_keeps_the_record_fresh) {
  Variables prefix = cache;
  prefix["CCACHE_PREFIX"] = program;
  ASSERT_EQ(tree.run({"ccache", "clang-15", "-c", "c.c", "-o", "c.o"}, prefix).exit_status, 0);
  ASSERT_THAT(tree.units(), SizeIs(1));
  std::filesystem::remove(tree.path() / "c.o");
  ASSERT_EQ(tree.run({"ccache", "clang-15", "-c", "c.c", "-o", "c.o"}, prefix).exit_status, 0);
  EXPECT_EQ(tree.database().statistics().records, 1U);
  EXPECT_FALSE(tree.database().find_output(tree.path() / "c.o").empty());
}

}  // namespace
}  // namespace kerncap::wrapper
