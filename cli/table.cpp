#include "cli/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::cli {

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(column.title.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string result;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      const bool right = columns_[i].align == Align::right;
      line += right ? fmt::format("{:>{}}", cell(i), widths[i]) : fmt::format("{:<{}}", cell(i), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  };
  add_line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](std::size_t i) { return i < row.size() ? row[i] : std::string(); });
  return result;
}

void print(const std::string& text) { support::write_all(STDOUT_FILENO, support::bytes_of(text), "standard output"); }

std::string human_time(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.1f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.2f} ms", nanoseconds / 1e6);
  return fmt::format("{:.3f} s", nanoseconds / 1e9);
}

}  // namespace kerncap::cli
