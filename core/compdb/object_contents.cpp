#include "core/compdb/object_contents.h"

#include "core/codeobject/code_object.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::compdb {
namespace {

IndexedKernel named(std::string symbol) {
  IndexedKernel kernel;
  kernel.spellings = codeobject::name_spellings(symbol, codeobject::demangle(symbol));
  kernel.symbol = std::move(symbol);
  return kernel;
}

}  // namespace

std::vector<IndexedCodeObject> code_objects_in(const std::string& path) {
  std::vector<IndexedCodeObject> result;
  try {
    const support::MappedFile file(path);
    bool any_bitcode = false;
    std::vector<codeobject::FoundCodeObject> all = codeobject::find_code_objects(file.bytes(), path);
    if (all.empty()) all = codeobject::code_objects_in_host_bitcode(file.bytes(), path);
    for (const codeobject::FoundCodeObject& found : all) {
      IndexedCodeObject& entry = result.emplace_back();
      entry.digest = found.digest;
      entry.target = found.target;
      entry.is_bitcode = found.is_bitcode;
      any_bitcode |= found.is_bitcode;
      if (found.is_bitcode) continue;
      try {
        const codeobject::CodeObject parsed = codeobject::parse_code_object(found.bytes, path);
        for (const codeobject::Kernel& kernel : parsed.kernels) entry.kernels.push_back(named(kernel.name));
        entry.cuids = parsed.cuids;
      } catch (const support::Error&) {
        // The digest alone is enough to find the record.
      }
    }
    // Relocatable device code is read by nobody but the compiler that wrote it; the host half names its kernels.
    if (any_bitcode) {
      for (std::string& symbol : codeobject::kernels_with_host_stubs(file.bytes(), path)) {
        const IndexedKernel kernel = named(std::move(symbol));
        for (IndexedCodeObject& entry : result) {
          if (entry.is_bitcode) entry.kernels.push_back(kernel);
        }
      }
    }
  } catch (const support::Error&) {
    // Not an object file after all (assembly, a dependency list, ...), or a damaged one: nothing to index.
  }
  return result;
}

}  // namespace kerncap::compdb
