// The kernel finder over a corpus: symbols as clang 15 or hipcc's compiler mangles them, definitions as Clang's AST has
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/codeobject/code_object.h"
#include "core/support/file.h"
#include "core/support/json.h"
#include "core/support/process.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using support::Json;
using ::testing::HasSubstr;

std::string output_of(std::vector<std::string> argv, const std::optional<std::string>& input = {}) {
  support::Command command;
  command.argv = std::move(argv);
  command.standard_input = input;
  command.standard_output = support::Stream::capture;
  command.timeout = std::chrono::minutes(2);
  const auto result = support::run(command);
  EXPECT_EQ(result.exit_status, 0) << result.standard_output;
  return result.standard_output;
}

class KernelFinder : public ::testing::Test {
 protected:
  static inline const std::string corpus = std::string(KERNCAP_TEST_CORPUS) + "/corpus.hip";

  void SetUp() override {
    const std::string object = (folder_.path() / "corpus.o").string();
    output_of({KERNCAP_TEST_CLANG, "-x", "hip", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib", "-std=c++17", "-O1",
               "-w", "-c", corpus, "-o", object});
    support::MappedFile file(object);
    for (const auto& found : codeobject::find_code_objects(file.bytes(), object))
      kernels_ = codeobject::parse_code_object(found.bytes, object).kernels;
    ASSERT_FALSE(kernels_.empty());
  }

  std::string symbol(const std::string& demangled_part) const {
    for (const auto& kernel : kernels_)
      if (kernel.demangled.find(demangled_part) != std::string::npos) return kernel.name;
    ADD_FAILURE() << "the corpus has no kernel " << demangled_part;
    return "";
  }

  Json find_symbol(const std::string& symbol) const {
    const std::string header = std::string(KERNCAP_TEST_CORPUS) + "/corpus_header.h";
    const Json request{
        {"symbol", symbol},
        {"directory", folder_.path().string()},
        {"main_file", corpus},
        {"options",
         {"-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib", "-std=c++17", "-O1"}},
        {"files",
         {{{"name", corpus}, {"content", corpus}, {"label", "src/corpus.hip"}},
          {{"name", header}, {"content", header}, {"label", "src/corpus_header.h"}}}}};
    return support::parse_json(output_of({KERNCAP_TEST_FINDER}, support::dump_json(request)), "answer");
  }
  Json find(const std::string& demangled_part) const { return find_symbol(symbol(demangled_part)); }

  // The lines that the corpus marks with @NAME ... @end.
  static std::pair<std::uint64_t, std::uint64_t> marked(const std::string& name) {
    const std::string text = support::read_text_file(corpus);
    std::uint64_t line = 1, first = 0;
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::size_t end = text.find('\n', at);
      const std::string row = text.substr(at, end - at);
      const auto mark = row.find("// @" + name);
      if (mark != std::string::npos && (row.size() == mark + 4 + name.size() || row[mark + 4 + name.size()] == ' '))
        first = row.find_first_not_of(" ") == mark ? line + 1 : line;
      if (first != 0 && line >= first && row.find("@end") != std::string::npos) return {first, line};
      at = end + 1;
    }
    ADD_FAILURE() << "no mark " << name;
    return {};
  }

  static std::pair<std::uint64_t, std::uint64_t> lines(const Json& answer) {
    if (answer.contains("problem")) {
      ADD_FAILURE() << answer.dump();
      return {};
    }
    return {answer.at("first_line").get<std::uint64_t>(), answer.at("last_line").get<std::uint64_t>()};
  }

  support::TemporaryFolder folder_;
  std::vector<codeobject::Kernel> kernels_;
};

TEST_F(KernelFinder, TellsThePrimaryTemplateFromASpecialisation) {
  EXPECT_EQ(lines(find("templated<float, 3>")), marked("primary"));
  EXPECT_EQ(lines(find("templated<double, 7>")), marked("explicit"));
  EXPECT_EQ(find("templated<float, 3>").at("template_arguments"), Json({"float", "3"}));
}

TEST_F(KernelFinder, PointsToTheUseOfAMacroAndNamesIt) {
  const auto answer = find("made_by_macro");
  EXPECT_EQ(lines(answer), marked("macro"));
  EXPECT_EQ(answer.at("macro"), "DEFINE_KERNEL");
}

TEST_F(KernelFinder, SeesAttributesCLinkageAndAnonymousNamespaces) {
  EXPECT_EQ(lines(find("bounded(")), marked("attributes"));
  EXPECT_EQ(lines(find("c_kernel")), marked("c_linkage"));
  EXPECT_EQ(lines(find("hidden(")), marked("anonymous"));
}

TEST_F(KernelFinder, TellsOverloadsApart) {
  EXPECT_EQ(lines(find("overloaded(int*)")), marked("overload_int"));
  EXPECT_EQ(lines(find("overloaded(float*)")), marked("overload_float"));
}

TEST_F(KernelFinder, ReadsTheFieldsOfAFunctorThatALauncherTakes) {
  const auto answer = find("launch<Functor>");
  EXPECT_EQ(lines(answer), marked("launcher"));
  const auto& body = answer.at("parameters").at(0);
  EXPECT_EQ(body.at("size"), 24u);
  ASSERT_EQ(body.at("fields").size(), 3u);
  EXPECT_EQ(body.at("fields").at(0).at("element"), "f32");
  EXPECT_EQ(body.at("fields").at(1).at("offset"), 8u);
  EXPECT_EQ(body.at("fields").at(1).at("element"), "f64");
  EXPECT_EQ(body.at("fields").at(1).at("const"), true);
  std::string callees = answer.at("callees").dump();
  EXPECT_THAT(callees, HasSubstr("Functor::operator()"));
  EXPECT_THAT(callees, HasSubstr("helper_of_helper"));
}

TEST_F(KernelFinder, TellsLambdasApart) {
  int lambdas = 0;
  std::vector<std::uint64_t> bodies;
  for (const auto& kernel : kernels_) {
    if (kernel.demangled.find("launch<use(") == std::string::npos) continue;
    ++lambdas;
    const auto answer = find_symbol(kernel.name);
    EXPECT_EQ(lines(answer), marked("launcher"));
    for (const auto& callee : answer.at("callees"))
      if (callee.at("name").get<std::string>().find("operator()") != std::string::npos)
        bodies.push_back(callee.at("first_line").get<std::uint64_t>());
  }
  EXPECT_EQ(lambdas, 2);
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_NE(bodies[0], bodies[1]);
}

TEST_F(KernelFinder, FindsMembersHeadersAndVariadicTemplates) {
  EXPECT_EQ(lines(find("Class::member<float>")), marked("member"));
  const auto header = find("in_header<float>");
  EXPECT_EQ(header.at("file"), "src/corpus_header.h");
  EXPECT_EQ(header.at("first_line"), 5u);
  const auto variadic = find("variadic<int, float, double>");
  ASSERT_EQ(variadic.at("parameters").size(), 3u);
  EXPECT_EQ(variadic.at("parameters").at(2).at("element"), "f64");
}

TEST_F(KernelFinder, GivesThePhysicalPlaceAndWhatLineDirectivesSay) {
  const auto answer = find("from_generator");
  EXPECT_EQ(answer.at("file"), "src/corpus.hip");
  EXPECT_EQ(answer.at("presumed_file"), "generator/input.y");
  EXPECT_EQ(answer.at("presumed_line"), 500u);
  EXPECT_LT(answer.at("first_line").get<std::uint64_t>(), 200u);
}

TEST_F(KernelFinder, KnowsTheElementTypesOfParameters) {
  const auto parameters = find("types(").at("parameters");
  const char* expected[] = {"f32", "f32", "", "u8", "u8", "u64", "", "i32"};
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(parameters.at(i).at("element"), expected[i]) << i;
  EXPECT_EQ(parameters.at(0).at("type"), "real *");
  EXPECT_EQ(parameters.at(0).at("canonical"), "float *");
  EXPECT_EQ(find("hidden(").at("parameters").at(0).at("element"), "f16");
  EXPECT_EQ(find("nameless(").at("parameters").at(1).at("name"), "");
}

TEST_F(KernelFinder, SaysThatASymbolIsNotThere) {
  const auto answer = find_symbol("_Z7missingv");
  EXPECT_THAT(answer.at("problem").get<std::string>(), HasSubstr("none of the"));
}

TEST_F(KernelFinder, AnswersForACodeThatDoesNotParseCompletely) {
  const std::string broken = (folder_.path() / "broken.hip").string();
  support::write_file_atomically(broken,
                                 "#define __global__ __attribute__((global))\n"
                                 "struct Unknown; void f() { unknown_builtin(3); Unknown u; }\n"
                                 "__global__ void k(int* p) { *p = 1; }\n");
  const Json request{
      {"symbol", "_Z1kPi"},
      {"directory", "/"},
      {"main_file", broken},
      {"options", {"-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib"}},
      {"files", Json::array()}};
  const auto answer = support::parse_json(output_of({KERNCAP_TEST_FINDER}, support::dump_json(request)), "answer");
  EXPECT_EQ(answer.at("first_line"), 3u);
}

TEST(KernelFinderProgram, FailsWhenItsAnswerCannotBeWritten) {
  const support::TemporaryFolder folder;
  const fs::path file = folder.path() / "empty.hip";
  support::write_file_atomically(file, "int x;\n", 0644);
  const Json request{{"symbol", "k"},
                     {"directory", "/"},
                     {"main_file", file.string()},
                     {"options", Json::array()},
                     {"files", Json::array()}};
  const auto exit_status = [&](const std::string& redirection) {
    support::Command command;
    command.argv = {"sh", "-c", "trap '' PIPE; exec \"$0\" " + redirection, KERNCAP_TEST_FINDER};
    command.standard_input = support::dump_json(request);
    command.standard_output = support::Stream::capture;
    command.standard_error = support::Stream::null;
    command.timeout = std::chrono::minutes(2);
    return support::run(command).exit_status;
  };
  EXPECT_EQ(exit_status(""), 0);
  EXPECT_EQ(exit_status(">/dev/full"), 3);
  EXPECT_EQ(exit_status(">&-"), 3);
}

}  // namespace
}  // namespace kerncap::emit
