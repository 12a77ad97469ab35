// Messages of the software GPU. It lives in other people's processes: no logging library, no lock, one write() each.
#pragma once

#include <string_view>

namespace kerncap::softgpu {

// "kerncap softgpu: MESSAGE\n" on standard error.
void report(std::string_view message) noexcept;

// The same, only with KERNCAP_SOFTGPU_LOG=1: one line for each call into the driver.
bool tracing() noexcept;
[[gnu::format(printf, 1, 2)]] void trace(const char* format, ...) noexcept;

}  // namespace kerncap::softgpu
