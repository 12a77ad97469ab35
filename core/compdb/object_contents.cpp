#include "core/compdb/object_contents.h"

#include "core/codeobject/code_object.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::compdb {

std::vector<IndexedCodeObject> code_objects_in(const std::string& path) {
  std::vector<IndexedCodeObject> result;
  try {
    const support::MappedFile file(path);
    for (const codeobject::FoundCodeObject& found : codeobject::find_code_objects(file.bytes(), path)) {
      IndexedCodeObject& entry = result.emplace_back();
      entry.digest = found.digest;
      entry.target = found.target;
      entry.is_bitcode = found.is_bitcode;
      if (found.is_bitcode) continue;
      try {
        const codeobject::CodeObject parsed = codeobject::parse_code_object(found.bytes, path);
        for (const codeobject::Kernel& kernel : parsed.kernels) entry.kernels.push_back(kernel.name);
        entry.cuids = parsed.cuids;
      } catch (const support::Error&) {
        // The digest alone is enough to find the record.
      }
    }
  } catch (const support::Error&) {
    // Not an object file after all (assembly, a dependency list, ...), or a damaged one: nothing to index.
  }
  return result;
}

}  // namespace kerncap::compdb
