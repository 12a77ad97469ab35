// A record as bytes: the payload of one log frame. The layout is docs/formats/compilation-database.md, "Record".
//
// Strings are interned per record and written once; everything else is a variable-length integer that may name a
// string. decode_record() takes untrusted bytes and never throws for them: it says false and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/compdb/record.h"

namespace kerncap::compdb {

std::string encode_record(const Record& record);

// On failure `record` is unspecified and `error` (may be null) says what is wrong.
bool decode_record(std::string_view bytes, Record& record, std::string* error);

}  // namespace kerncap::compdb
