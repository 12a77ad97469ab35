// Lines of a stream, each of a bounded length.
#pragma once

#include <cstddef>
#include <string>

namespace kerncap::replay {

class LineReader {
 public:
  LineReader(int fd, std::size_t longest) : fd_(fd), longest_(longest) {}

  enum class Got {
    line,
    too_long,  // the line was skipped
    end,
    cancelled,  // cancel_fd became readable
  };
  Got next(std::string& line, int cancel_fd);

 private:
  int fd_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t looked_at_ = 0;  // no line ends before this
  bool skipping_ = false, ended_ = false;
};

}  // namespace kerncap::replay
