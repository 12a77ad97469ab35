#include "wrapper/unrecorded_tree.h"

#include <map>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"

namespace kerncap::wrapper {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_build_file = std::uint64_t{1} << 30;
constexpr const char* languages[] = {"C", "CXX", "HIP", "CUDA"};  // that have a launcher, cmake-variables(7)

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_build_tree(const fs::path& folder) {
  return is_there(folder / "CMakeCache.txt") || is_there(folder / "build.ninja") ||
         is_there(folder / "compile_commands.json");
}

std::string text_of(const fs::path& path) {
  try {
    return support::read_text_file(path, largest_build_file);
  } catch (const support::Error&) {
    return {};
  }
}

// NAME:TYPE=VALUE, one a line (CMakeCache.txt).
std::map<std::string, std::string> cmake_cache(const std::string& text) {
  std::map<std::string, std::string> entries;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = line.find('=');
    const std::size_t colon = line.find(':');
    if (line.starts_with('#') || line.starts_with("//") || equals == std::string::npos || colon >= equals) continue;
    entries[line.substr(0, colon)] = line.substr(equals + 1);
  }
  return entries;
}

std::string configure_again(const fs::path& tree, const std::string& cache, const std::string& wrapper) {
  const std::map<std::string, std::string> entries = cmake_cache(cache);
  std::vector<std::string> words = {"cmake"};
  if (const auto source = entries.find("CMAKE_HOME_DIRECTORY"); source != entries.end())
    words.insert(words.end(), {"-S", source->second});
  words.insert(words.end(), {"-B", tree.string()});
  for (const std::string language : languages) {
    if (!entries.contains("CMAKE_" + language + "_COMPILER")) continue;
    const std::string name = "CMAKE_" + language + "_COMPILER_LAUNCHER";
    const auto present = entries.find(name);
    const bool others = present != entries.end() && !present->second.empty();
    words.push_back("-D" + name + "=" + wrapper + (others ? ";" + present->second : ""));
  }
  return support::shell_quoted(words);
}

}  // namespace

UnrecordedTree look_at_unrecorded_tree(const std::vector<std::string>& command, const fs::path& database,
                                       const fs::path& program_folder) {
  const std::string kerncap = (program_folder / "kerncap").lexically_normal().string();
  const std::string wrapper = (program_folder / "kerncap-cc").lexically_normal().string();
  UnrecordedTree tree;
  std::vector<fs::path> candidates = {database.parent_path()};
  for (const std::string& word : command)
    candidates.push_back(fs::absolute(word));  // cmake --build TREE, ninja -C TREE
  candidates.push_back(fs::current_path());
  for (const fs::path& candidate : candidates) {
    if (!is_build_tree(candidate)) continue;
    tree.folder = candidate.lexically_normal();
    break;
  }
  if (tree.folder.empty()) {
    tree.goes_past_us = true;
    tree.how_to_record = "clean the build and run it with CC=" + support::shell_quoted({wrapper + " <compiler>"}) +
                         " (and CXX likewise)";
    return tree;
  }
  const std::string cache = text_of(tree.folder / "CMakeCache.txt");
  const std::string rules = cache.empty() ? text_of(tree.folder / "build.ninja") : cache;
  // As a launcher, as the compiler, or by a masquerade folder.
  tree.goes_past_us = rules.find("kerncap-cc") == std::string::npos && rules.find("/masquerade/") == std::string::npos;
  const std::string again = support::shell_quoted({kerncap, "build", "--db", database.string(), "--"}) + " ";
  if (!cache.empty()) {
    const std::string folder = tree.folder.string();
    tree.how_to_record = tree.goes_past_us
                             ? configure_again(tree.folder, cache, wrapper) + " && " + again +
                                   support::shell_quoted({"cmake", "--build", folder})
                             : again + support::shell_quoted({"cmake", "--build", folder, "--clean-first"});
  } else if (is_there(tree.folder / "meson-info")) {
    tree.how_to_record = again + support::shell_quoted({"meson", "setup", "--wipe", tree.folder.string()}) + " && " +
                         again + support::shell_quoted({"meson", "compile", "-C", tree.folder.string()});
  } else {
    tree.how_to_record = "generate the build files again with CC=" + support::shell_quoted({wrapper + " <compiler>"}) +
                         " (and CXX likewise), then run: " + again + support::shell_quoted(command);
  }
  return tree;
}

}  // namespace kerncap::wrapper
