// Sources kept as they were built: one file per content, named by its SHA-256.
#pragma once

#include <string>
#include <vector>

#include "core/compdb/record.h"

namespace kerncap::compdb {

// Whether sources are to be kept: KERNCAP_SOURCES=archive, or the database folder holds a file ARCHIVE.
bool archives_sources(const std::string& folder);

// Stores every file of the application (not the system's) under blobs/ and notes its digest. A file that cannot be
// read, or that is no longer what was hashed, keeps an empty digest. Returns 0 or the first errno of a failed write.
int archive_sources(const std::string& folder, std::vector<SourceFile>& files);

}  // namespace kerncap::compdb
