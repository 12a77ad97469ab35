// Files of an emitted project out of the files in templates/: a logic-less engine, no source text in C++.
#pragma once

#include <filesystem>
#include <string>

#include "core/support/json.h"

namespace kerncap::emit {

class Templates {
 public:
  explicit Templates(std::filesystem::path folder);  // throws Error{environment} when it is not there

  // `values`: what the template's tags name. Three tag forms keep text safe for what surrounds it: {{x}} is x as a
  // CMake quoted argument's content, {{{x}}} is x as it is. Throws Error{environment} for a template that is missing or
  // malformed.
  std::string render(const std::string& name, const support::Json& values) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// Content of a quoted CMake argument.
std::string cmake_escaped(const std::string& text);

}  // namespace kerncap::emit
