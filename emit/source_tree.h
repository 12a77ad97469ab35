// The application's sources inside a project: where each file goes, what the overlay calls it, and whether it still is
// what was compiled.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/compdb/database.h"
#include "core/compdb/record.h"

namespace kerncap::emit {

struct TreeFile {
  std::string original;                // absolute, resolved
  std::string project_path;            // "src/..."
  std::string content;                 // as compiled, or as it is now when `changed`
  bool changed = false;                // differs from what was compiled and no archived copy exists
  std::set<std::size_t> device_units;  // translation units whose device passes read it
};

struct OverlayEntry {
  std::string name;  // as opened: absolute, or with work_placeholder where it was spelled relative
  std::string project_path;
};

struct SourceTree {
  std::vector<TreeFile> files;
  std::vector<OverlayEntry> overlay;               // by name
  std::map<std::string, std::string> by_original;  // resolved original -> project path
  std::vector<std::string> missing;                // originals that are gone and not archived
  std::string main_file;                           // project path of the (first) main source
  // Every folder of the project's tree with the names under which the compiler knows it: files that are added to a
  // project later are found through these.
  std::vector<std::pair<std::string, std::string>> folders;  // project folder, name of the folder
};

// `records`: the translation units; the first is the kernel's own. `blobs` may be null.
SourceTree collect_sources(const std::vector<const compdb::Record*>& records, std::string_view target,
                           const compdb::Database* blobs);

// The recorded working directory as it is rebuilt below work_placeholder: the same depth, in names that build systems
// can take.
std::string work_directory(const std::string& directory);

// "/home/me/app", "../x/k.h" -> "@KERNCAP_WORK@/home/me/x/k.h"; absolute spellings stay, dots removed.
std::string overlay_name(const std::string& directory, const std::string& spelling);

}  // namespace kerncap::emit
