// `kerncap db show`: what the compilation database knows of a key, whatever kind of key it is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/program.h"
#include "core/compdb/record.h"

namespace kerncap::cli {

// How far a record can be trusted: a word, and a sentence about it.
const char* origin_name(compdb::Origin origin);
const char* origin_explained(compdb::Origin origin);

// The names of the kinds of keys, for --as.
std::vector<std::string> key_kinds();

// Shows what the database in `folder` knows of `key`; `kind` is one of key_kinds(), or empty for all of them. Answers
// answer_is_no with the candidates where the key does not say which one is meant.
support::ExitCode show_key(const Program& program, const std::filesystem::path& folder, const std::string& key,
                           const std::string& kind);

}  // namespace kerncap::cli
