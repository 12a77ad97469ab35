// The real objects that the build compiled for the tests, and damage to them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "core/support/file.h"

namespace kerncap::codeobject {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(KERNCAP_TEST_FIXTURES) / name;
}

inline std::string fixture_text(const std::string& name) { return support::read_text_file(fixture(name)); }

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace kerncap::codeobject
