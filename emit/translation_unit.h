// From a code object to the compiler call that made it.
#pragma once

#include <string>
#include <vector>

#include "core/compdb/database.h"
#include "emit/emit.h"

namespace kerncap::emit {

struct Resolved {
  std::vector<compdb::Record> units;   // the kernel's own translation unit first; more than one for an RDC link
  std::optional<compdb::Record> link;  // the device link of relocatable device code
  std::string target;
  std::vector<TranslationUnit> candidates;  // other calls with the same result
  std::vector<std::string> warnings;
  std::string reason;  // why there is no unit
};

// Throws Error{answer_is_no} when different sources gave the same code and `options.object` does not choose.
Resolved resolve_translation_unit(const compdb::Database& database, const std::string& digest,
                                  const std::string& symbol, const std::string& target, const EmitOptions& options);

TranslationUnit describe(const compdb::Record& record);

}  // namespace kerncap::emit
