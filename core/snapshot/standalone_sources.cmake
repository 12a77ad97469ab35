# What an emitted project compiles to read its snapshot, relative to the root of Kerncap's sources: the reader half of
# this folder and the support it stands on. Needs fmt, nlohmann-json, zstd, xxHash and OpenSSL's libcrypto; no LLVM.
set(KERNCAP_SNAPSHOT_STANDALONE_SOURCES
  core/snapshot/manifest.cpp
  core/snapshot/reader.cpp
  core/support/file.cpp
  core/support/hash.cpp
  core/support/json.cpp
  core/support/sha256.cpp)
set(KERNCAP_SNAPSHOT_STANDALONE_HEADERS
  core/codeobject/kernel.h
  core/snapshot/layout.h
  core/snapshot/manifest.h
  core/snapshot/reader.h
  core/support/error.h
  core/support/file.h
  core/support/hash.h
  core/support/json.h
  core/support/sha256.h
  core/support/xxh3_stream.h)
