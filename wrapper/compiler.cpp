#include "wrapper/compiler.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/compdb/file_system.h"
#include "wrapper/settings.h"

namespace kerncap::wrapper {
namespace {

using compdb::absolute_path;
using compdb::base_name;
using compdb::current_directory;
using compdb::FileIdentity;
using compdb::identify;

constexpr std::string_view own_name = "kerncap-cc";
constexpr std::string_view compiler_option = "--kerncap-compiler=";
constexpr const char* no_compiler =
    "no compiler named; use: kerncap-cc COMPILER ARGUMENTS, or name the compiler with --kerncap-compiler=NAME, "
    "KERNCAP_CC_COMPILER or 'compiler' in kerncap.toml";
constexpr const char* default_path = "/usr/local/bin:/usr/bin:/bin";

// Programs that take the compiler's command line as theirs.
constexpr std::string_view launchers[] = {"ccache", "sccache", "distcc", "icecc", "buildcache", "fastbuild", "gomacc"};

std::string absolute(std::string_view path) {
  return absolute_path(path.starts_with('/') ? std::string() : current_directory(), path);
}

// PATH, looked through once for each name and no further than the hit: this runs before every compile of a build.
class Search {
 public:
  Search() {
    // The path we were started by; /proc need not be mounted, and costs more.
    const unsigned long started_as = getauxval(AT_EXECFN);
    if (started_as != 0) self_ = identify(reinterpret_cast<const char*>(started_as));
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : default_path;
    for (;;) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      const std::string_view entry = rest.substr(0, colon);
      folders_.push_back({.path = entry.empty() ? std::string_view(".") : entry});
      folders_.back().ours = is_masquerade_folder(folders_.back().path);
      if (colon == rest.size()) break;
      rest.remove_prefix(colon + 1);
    }
  }

  bool is_self(const FileIdentity& file) const {
    return file.exists && file.inode == self_.inode && file.device == self_.device;
  }

  // The program that a shell would start, ours excepted; empty when there is none.
  std::string find(const std::string& name) {
    if (name == last_name_) return last_found_;
    last_name_ = name;
    return last_found_ = look_for(name);
  }

  // What is left of PATH without the folders in which a compiler's name is ours, as far as it has been looked through.
  std::string path_of_others() const {
    std::string path;
    for (const Folder& folder : folders_) {
      if (folder.ours) continue;
      if (!path.empty()) path += ':';
      path += folder.path;
    }
    return path;
  }
  bool masquerading() const { return std::ranges::any_of(folders_, &Folder::ours); }

 private:
  struct Folder {
    std::string_view path;
    bool ours = false;
  };

  std::string look_for(const std::string& name) {
    if (name.find('/') != std::string::npos) {
      std::string path = absolute(name);
      const FileIdentity file = identify(path);
      if (!file.regular || access(path.c_str(), X_OK) != 0) return {};
      // Our own link by its full path ("/…/masquerade/clang++"): the compiler of that name.
      if (!is_self(file) || base_name(path) == own_name) return path;
      return look_for(base_name(path));
    }
    std::string path;
    for (Folder& folder : folders_) {
      path.assign(folder.path);
      path += '/';
      path += name;
      const FileIdentity file = identify(path);
      if (!file.regular) continue;
      if (is_self(file)) {
        folder.ours = folder.ours || name != own_name;
      } else if (access(path.c_str(), X_OK) == 0) {
        return absolute(path);
      }
    }
    return {};
  }

  // The folders that Kerncap makes have this name; those that a user makes are known when a compiler is found there.
  bool is_masquerade_folder(std::string_view folder) const {
    while (folder.ends_with('/')) folder.remove_suffix(1);
    if (!folder.ends_with("/masquerade")) return false;
    for (const char* name : {"/gcc", "/cc", "/clang", "/hipcc", "/c++", "/clang++", "/g++", "/nvcc"}) {
      if (is_self(identify(std::string(folder) + name))) return true;
    }
    return false;
  }

  FileIdentity self_;
  std::vector<Folder> folders_;
  std::string last_name_, last_found_;
};

bool is_launcher(const std::string& program) {
  return std::ranges::find(launchers, base_name(program)) != std::end(launchers);
}

std::string compiler_named_aside() {
  const char* named = std::getenv("KERNCAP_CC_COMPILER");
  return named != nullptr && named[0] != '\0' ? named : compiler_of_settings(current_directory());
}

}  // namespace

Target find_target(const std::vector<std::string>& argv) {
  Search search;
  Target target;
  std::vector<std::string>& command = target.command;
  const std::string name = base_name(argv.empty() ? std::string(own_name) : argv[0]);
  if (name == own_name) {
    command.assign(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
    if (!command.empty() && command[0].starts_with(compiler_option)) {
      command[0].erase(0, compiler_option.size());
    } else if (!command.empty() && command[0] == "--") {
      command.erase(command.begin());
    } else if (command.empty() || search.find(command[0]).empty()) {
      // "CC=kerncap-cc" with the compiler named aside: then the first argument is an option or a file, not a program.
      const std::string stand_in = compiler_named_aside();
      if (!stand_in.empty()) command.insert(command.begin(), stand_in);
    }
  } else {
    command = argv;
  }
  if (command.empty() || command[0].empty() || command[0].starts_with('-')) {
    target.error = no_compiler;
    return target;
  }
  while (target.compiler + 1 < command.size() && is_launcher(command[target.compiler]) &&
         !command[target.compiler + 1].starts_with('-')) {
    ++target.compiler;
  }
  target.compiler_path = search.find(command[target.compiler]);
  target.program = search.find(command[0]);
  if (target.program.empty()) {
    const bool looked_up = command[0].find('/') == std::string::npos || search.is_self(identify(command[0]));
    target.error = looked_up ? "there is no program '" + base_name(command[0]) + "' on PATH besides Kerncap's own"
                             : "there is no program '" + command[0] + "'";
    return target;
  }
  // Programs look at the name they were called by; only one of ours must not be seen there.
  if (command[0].find('/') != std::string::npos && search.is_self(identify(command[0]))) command[0] = target.program;
  target.search_path = search.path_of_others();
  target.masquerading = search.masquerading();
  return target;
}

}  // namespace kerncap::wrapper
