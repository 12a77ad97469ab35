#include "wrapper/compiler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/compdb/file_system.h"

namespace kerncap::wrapper {
namespace {

using compdb::absolute_path;
using compdb::base_name;
using compdb::current_directory;
using compdb::FileIdentity;
using compdb::folder_of;
using compdb::identify;

constexpr std::string_view own_name = "kerncap-cc";
constexpr const char* default_path = "/usr/local/bin:/usr/bin:/bin";

// Programs that take the compiler's command line as theirs.
constexpr std::string_view launchers[] = {"ccache", "sccache", "distcc", "icecc", "buildcache", "fastbuild", "gomacc"};

class Search {
 public:
  Search() : self_(identify("/proc/self/exe")) {
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : default_path;
    for (;;) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      const std::string_view entry = rest.substr(0, colon);
      folders_.emplace_back(entry.empty() ? std::string_view(".") : entry);
      if (colon == rest.size()) break;
      rest.remove_prefix(colon + 1);
    }
    // A folder with a kerncap-cc under a compiler's name is a masquerade folder: nothing below us needs it.
    masquerading_ =
        std::erase_if(folders_, [this](const std::string& folder) { return is_masquerade_folder(folder); }) != 0;
    for (const std::string& folder : folders_) search_path_ += (search_path_.empty() ? "" : ":") + folder;
  }

  bool is_self(const FileIdentity& file) const {
    return file.exists && file.inode == self_.inode && file.device == self_.device;
  }

  // The program that a shell would start, ours excepted; empty when there is none.
  std::string find(const std::string& name) const {
    if (name.find('/') != std::string::npos) {
      const std::string path = absolute_path(current_directory(), name);
      if (!is_program(path)) return {};
      // Our own link by its full path ("/…/masquerade/clang++"): the compiler of that name.
      if (!is_self(identify(path)) || base_name(path) == own_name) return path;
      return find(base_name(path));
    }
    for (const std::string& folder : folders_) {
      std::string path = absolute_path(current_directory(), folder + "/" + name);
      if (is_program(path) && !is_self(identify(path))) return path;
    }
    return {};
  }

  const std::string& search_path() const { return search_path_; }
  bool masquerading() const { return masquerading_; }

 private:
  static bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0 && identify(path).regular; }
  bool is_masquerade_folder(const std::string& folder) const {
    for (const char* name : {"/cc", "/hipcc", "/c++", "/clang++", "/g++", "/gcc", "/clang", "/nvcc"}) {
      if (is_self(identify(folder + name))) return true;
    }
    return false;
  }

  FileIdentity self_;
  std::vector<std::string> folders_;
  std::string search_path_;
  bool masquerading_ = false;
};

bool is_launcher(const std::string& program) {
  return std::ranges::find(launchers, base_name(program)) != std::end(launchers);
}

}  // namespace

Target find_target(const std::vector<std::string>& argv) {
  const Search search;
  Target target;
  std::vector<std::string>& command = target.command;
  const std::string name = base_name(argv.empty() ? std::string(own_name) : argv[0]);
  const char* stand_in = std::getenv("KERNCAP_CC_COMPILER");
  if (name == own_name) {
    command.assign(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
    if (!command.empty() && command[0] == "--") command.erase(command.begin());
    // "CC=kerncap-cc" with the compiler named aside: then the first argument is an option or a file, not a program.
    if (stand_in != nullptr && stand_in[0] != '\0' && (command.empty() || search.find(command[0]).empty())) {
      command.insert(command.begin(), stand_in);
    }
  } else {
    command = argv;
  }
  if (command.empty()) {
    target.error = "no compiler named; use: kerncap-cc COMPILER ARGUMENTS";
    return target;
  }
  while (target.compiler + 1 < command.size() && is_launcher(command[target.compiler]) &&
         !command[target.compiler + 1].starts_with('-')) {
    ++target.compiler;
  }
  target.program = search.find(command[0]);
  target.compiler_path = search.find(command[target.compiler]);
  if (target.program.empty()) {
    const bool looked_up = command[0].find('/') == std::string::npos || search.is_self(identify(command[0]));
    target.error = looked_up ? "there is no program '" + base_name(command[0]) + "' on PATH besides Kerncap's own"
                             : "there is no program '" + command[0] + "'";
    return target;
  }
  // Programs look at the name they were called by; only one of ours must not be seen there.
  if (command[0].find('/') != std::string::npos && search.is_self(identify(command[0]))) command[0] = target.program;
  target.search_path = search.search_path();
  target.masquerading = search.masquerading();
  return target;
}

}  // namespace kerncap::wrapper
