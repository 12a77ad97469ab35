// xxh3_128() of bytes that come in pieces.
#pragma once

#include <memory>

#include "core/support/hash.h"

namespace kerncap::support {

class Xxh3Stream {
 public:
  Xxh3Stream();  // throws Error{environment} without memory
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  void update(Bytes data);
  Hash128 digest() const;  // of everything so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kerncap::support
