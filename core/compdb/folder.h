// Where the database of a build is.
#pragma once

#include <string>

namespace kerncap::compdb {

inline constexpr const char* database_folder_name = ".kerncap";
inline constexpr const char* database_variable = "KERNCAP_DB";

// KERNCAP_DB if it is set and not empty, otherwise the nearest folder `.kerncap` in `start` or above it that is a
// database (holds the file VERSION); empty when there is none. The folder KERNCAP_DB names need not exist.
std::string find_database_folder(const std::string& start);

// Makes an empty database: the folder and its VERSION file. Returns 0 or an errno; an existing database is left as it
// is.
int create_database_folder(const std::string& folder);

// The number in the folder's VERSION file; 1 when there is none, 0 when it cannot be read as a number.
unsigned database_version(const std::string& folder);
inline constexpr unsigned newest_database_version = 1;

}  // namespace kerncap::compdb
