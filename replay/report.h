// A verdict as one page to look at: no script, nothing from elsewhere, every text escaped.
#pragma once

#include <filesystem>
#include <string>

#include "replay/verdict.h"

namespace kerncap::replay {

// `template_file`: report.html.mustache. Throws Error{environment} when it is missing or malformed.
std::string html_report(const Verdict& verdict, const std::filesystem::path& template_file);

}  // namespace kerncap::replay
