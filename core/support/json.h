// The one JSON reader and writer: nlohmann::json with Kerncap's error type and checked access.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kerncap::support {

using Json = nlohmann::ordered_json;

// Parse; throw Error{bad_input} naming `what` and the position. Non-UTF-8 and nesting deeper than 100 are refused.
Json parse_json(std::string_view text, std::string_view what);
Json read_json_file(const std::filesystem::path& path);

// Two-space indentation, a final newline, invalid UTF-8 replaced.
std::string dump_json(const Json& value);

// Checked access for untrusted documents: throw Error{bad_input} "WHAT: 'KEY' is missing / is not a number ...".
const Json& member(const Json& object, const char* key, std::string_view what);
std::string string_member(const Json& object, const char* key, std::string_view what);
std::uint64_t unsigned_member(const Json& object, const char* key, std::string_view what);  // number or "0x..." string
bool bool_member(const Json& object, const char* key, std::string_view what);
const Json& array_member(const Json& object, const char* key, std::string_view what);

// Addresses and hashes are written as "0x..." strings, because JSON numbers lose bits above 2^53 in many readers.
std::string hex_string(std::uint64_t value);

}  // namespace kerncap::support
