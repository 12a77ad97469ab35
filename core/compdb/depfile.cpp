#include "core/compdb/depfile.h"

#include <algorithm>
#include <unordered_set>

namespace kerncap::compdb {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // The next word; false at the end of the rule (a newline without a continuation) or of the text.
  bool next(std::string& word, bool& ends_target) {
    word.clear();
    ends_target = false;
    skip_blanks();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || continuation()) break;
      if (c == '\\' && at_ + 1 < text_.size()) {
        take_backslashes(word);
        continue;
      }
      if (c == '$' && peek(1) == '$') ++at_;
      if (c == ':' && (peek(1) == ' ' || peek(1) == '\t' || peek(1) == '\n' || peek(1) == '\r' || peek(1) == '\0' ||
                       (peek(1) == '\\' && peek(2) == '\n'))) {
        ++at_;
        ends_target = true;
        return true;
      }
      word.push_back(c);
      ++at_;
    }
    return !word.empty();
  }
  bool at_end() const { return at_ >= text_.size(); }
  void skip_newline() {
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
  }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool continuation() const { return peek(0) == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n')); }
  void skip_blanks() {
    for (;;) {
      if (peek(0) == ' ' || peek(0) == '\t' || peek(0) == '\r') {
        ++at_;
      } else if (continuation()) {
        at_ += peek(1) == '\n' ? 2 : 3;
      } else {
        return;
      }
    }
  }
  // GNU make's rule: before a blank or '#', 2n+1 backslashes are n and the character, 2n are n; elsewhere they are
  // themselves.
  void take_backslashes(std::string& word) {
    std::size_t count = 0;
    while (peek(count) == '\\' && !(peek(count + 1) == '\n')) ++count;
    const char after = peek(count);
    at_ += count;
    if (after != ' ' && after != '\t' && after != '#') {
      word.append(count, '\\');
      return;
    }
    word.append(count / 2, '\\');
    if (count % 2 == 1) {
      word.push_back(after);
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

namespace {

constexpr std::string_view module_suffix = ".c++m";

void add_module(Dependencies& found, std::string_view word) {
  if (!word.ends_with(module_suffix) || word.size() == module_suffix.size()) return;
  std::string name(word.substr(0, word.size() - module_suffix.size()));
  if (std::ranges::find(found.modules, name) == found.modules.end()) found.modules.push_back(std::move(name));
}

}  // namespace

Dependencies parse_depfile(std::string_view text) {
  Reader reader(text);
  Dependencies found;
  while (!reader.at_end()) {
    std::vector<std::string> targets, files;
    std::unordered_set<std::string> seen;
    std::string word;
    bool in_targets = true, ends_target = false;
    while (reader.next(word, ends_target)) {
      if (in_targets) {
        if (!word.empty()) targets.push_back(word);
        if (ends_target) in_targets = false;
      } else if (!word.empty() && seen.insert(word).second) {
        files.push_back(word);
      }
    }
    if (found.files.empty()) {
      found.targets = std::move(targets);
      found.files = std::move(files);
      if (found.files.empty()) found.targets.clear();
    } else if (!targets.empty() && !found.targets.empty() && targets.front() == found.targets.front()) {
      for (const std::string& file : files) add_module(found, file);
    }
    reader.skip_newline();
  }
  return found;
}

}  // namespace kerncap::compdb
