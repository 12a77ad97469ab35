// Which code objects stand in an output file.
#pragma once

#include <string>
#include <vector>

namespace kerncap::compdb {

struct IndexedKernel {
  std::string symbol;                  // the mangled function name
  std::vector<std::string> spellings;  // every way people write it, codeobject::name_spellings()
};

struct IndexedCodeObject {
  std::string digest, target;
  bool is_bitcode = false;
  std::vector<IndexedKernel> kernels;
  std::vector<std::string> cuids;  // hexadecimal
};

// Empty for files without code objects, missing files, and files that cannot be read as what they seem to be.
// Thread-safe.
std::vector<IndexedCodeObject> code_objects_in(const std::string& path);

}  // namespace kerncap::compdb
