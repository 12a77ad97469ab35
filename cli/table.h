// Tables for people; the same rows go to --json by the command itself.
#pragma once

#include <string>
#include <vector>

namespace kerncap::cli {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text() const;  // a header line, the rows; two spaces between columns; a final newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Result text to standard output, whole or Error{environment} (a closed pipe, a full disk).
void print(const std::string& text);

std::string human_time(double nanoseconds);  // "12.3 us"

}  // namespace kerncap::cli
