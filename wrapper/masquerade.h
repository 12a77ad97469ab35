// The environment in which a build meets kerncap-cc, whatever drives it: for `kerncap build -- CMD...`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kerncap::wrapper {

// Changes to the caller's environment, in the form of support::Command::environment.
using Environment = std::map<std::string, std::optional<std::string>>;

struct BuildOptions {
  std::filesystem::path program_folder;  // where kerncap-cc is: support::executable_folder() of bin/kerncap
  std::filesystem::path database;        // absolute; exists
  std::vector<std::string> command;      // the build command, which decides who finds compilers by PATH and who by CC
};

// PATH with a masquerade folder first (the database's own, with every compiler that PATH offers, versioned names
// included), CMake's launchers (in front of those the user has), KERNCAP_DB, and for compilers that CC, CXX or HIPCXX
// name by their full path, kerncap-cc in front of it. Throws Error{environment} when kerncap-cc is not where it should
// be.
Environment build_environment(const BuildOptions& options);

}  // namespace kerncap::wrapper
