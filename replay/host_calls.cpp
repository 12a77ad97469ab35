#include "replay/host_calls.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace kerncap::replay {
namespace {

// hostcall services (ockl_hostcall.h).
constexpr std::uint32_t service_printf = 2;
// A message's descriptor: begin and end flags, how many words of the slot are used, which message
// (ockl/src/hostcall.cl).
constexpr std::uint64_t flag_begin = 1, flag_end = 2;
constexpr unsigned length_at = 5, length_mask = 7, id_at = 8;

constexpr std::size_t most_printed = 64 * 1024, most_words = 64 * 1024, most_open = 1024;

std::size_t payloads_at(std::size_t packets) {
  const std::size_t headers = sizeof(HostCallBuffer) + packets * sizeof(HostCallHeader);
  return (headers + 63) / 64 * 64;
}

// One conversion of printf: "%-8.3lf" without its length modifiers, which mean nothing here: all numbers have 8 bytes.
struct Conversion {
  std::string flags;
  char kind = 0;
  unsigned stars = 0;
};

Conversion next_conversion(const char*& at) {
  Conversion result;
  for (; *at != 0; ++at) {
    if (*at == '*') ++result.stars;
    if (std::strchr("-+ #0123456789.*", *at) != nullptr) {
      result.flags += *at;
    } else if (std::strchr("hlLjzt", *at) == nullptr) {
      result.kind = *at++;
      break;
    }
  }
  return result;
}

// Widths come from the device: bounded, so that none makes a text of gigabytes.
int bounded(std::uint64_t word) {
  constexpr int most = 1000;
  const auto value = static_cast<std::int32_t>(word);
  return value > most ? most : value < -most ? -most : value;
}

}  // namespace

std::size_t host_call_bytes(std::size_t packets) { return payloads_at(packets) + packets * sizeof(HostCallPayload); }

HostCallBuffer* make_host_call_buffer(std::span<std::byte> memory, std::size_t packets, std::uint64_t doorbell) {
  auto* buffer = reinterpret_cast<HostCallBuffer*>(memory.data());
  *buffer = {};
  buffer->headers = reinterpret_cast<HostCallHeader*>(buffer + 1);
  buffer->payloads = reinterpret_cast<HostCallPayload*>(memory.data() + payloads_at(packets));
  buffer->doorbell = doorbell;
  buffer->index_mask = packets - 1;
  // Pointers are an index and, above it, a tag that grows with every use; zero is none, so packet 0 starts with a tag.
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < packets; ++i) {
    buffer->headers[i].next = next;
    next = i == 0 ? packets : i;
  }
  buffer->free_stack = next;
  return buffer;
}

// The conversions that snprintf() gets are put together here, of flags, digits and one known letter.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
std::string formatted(std::span<const std::uint64_t> message) {
  // The text begins the message; arguments follow at the next word.
  const auto* bytes = reinterpret_cast<const char*>(message.data());
  const std::size_t size = message.size_bytes();
  const auto text_at = [&](std::size_t word) {
    const std::size_t begin = word * 8;
    return begin >= size ? std::string() : std::string(bytes + begin, ::strnlen(bytes + begin, size - begin));
  };
  const auto words_of = [](const std::string& text) { return text.size() / 8 + 1; };
  const std::string format = text_at(0);
  std::size_t word = words_of(format);
  const auto take = [&] { return word < message.size() ? message[word++] : std::uint64_t{0}; };
  std::string result;
  for (const char* at = format.c_str(); *at != 0;) {
    if (*at != '%') {
      result += *at++;
      continue;
    }
    ++at;
    const Conversion conversion = next_conversion(at);
    std::string spec = "%";
    for (const char c : conversion.flags) spec += c == '*' ? std::to_string(bounded(take())) : std::string(1, c);
    // A width or precision of more than three digits is none that a person would read.
    std::size_t digits = 0, run = 0;
    for (const char c : spec) digits = std::max(digits, run = c >= '0' && c <= '9' ? run + 1 : 0);
    if (digits > 4) spec = "%";
    std::array<char, 6000> piece{};
    switch (conversion.kind) {
      case '%':
        result += '%';
        continue;
      case 'd':
      case 'i':
        spec += "lld";
        std::snprintf(piece.data(), piece.size(), spec.c_str(), static_cast<long long>(take()));
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        spec += std::string("ll") + conversion.kind;
        std::snprintf(piece.data(), piece.size(), spec.c_str(), static_cast<unsigned long long>(take()));
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        spec += conversion.kind;
        std::snprintf(piece.data(), piece.size(), spec.c_str(), std::bit_cast<double>(take()));
        break;
      case 'c':
        spec += 'c';
        std::snprintf(piece.data(), piece.size(), spec.c_str(), static_cast<int>(take() & 0x7f));
        break;
      case 'p':
        std::snprintf(piece.data(), piece.size(), "0x%llx", static_cast<unsigned long long>(take()));
        break;
      case 's': {
        const std::string text = text_at(word);
        word += words_of(text);
        result += text;
        continue;
      }
      default:
        result += '%';
        continue;
    }
    result += piece.data();
  }
  return result;
}

#pragma GCC diagnostic pop

// One step of a message: up to seven words. The device goes on with the descriptor that it gets back.
void HostCalls::message(std::uint64_t (&slot)[8]) {
  std::uint64_t descriptor = slot[0];
  if ((descriptor & flag_begin) != 0) {
    if (open_.size() >= most_open) open_.erase(open_.begin());
    descriptor = (descriptor & ((std::uint64_t{1} << id_at) - 1) & ~flag_begin) | ++last_id_ << id_at;
    open_[last_id_];
  }
  const auto found = open_.find(descriptor >> id_at);
  const std::uint64_t length = descriptor >> length_at & length_mask;
  slot[0] = descriptor;
  if (found == open_.end()) return;
  std::vector<std::uint64_t>& words = found->second;
  if (words.size() < most_words) words.insert(words.end(), slot + 1, slot + 1 + length);
  if ((descriptor & flag_end) == 0) return;
  // The first word says where to print (standard output or error); the verdict has one place for both.
  const std::string text = words.empty() ? std::string() : formatted(std::span(words).subspan(1));
  open_.erase(found);
  const std::size_t room = most_printed - std::min(most_printed, printed.size());
  printed += text.substr(0, room);
  dropped_bytes += text.size() - std::min(text.size(), room);
  slot[0] = text.size();
  slot[1] = 0;
}

void HostCalls::answer(HostCallHeader& header, HostCallPayload& payload) {
  for (std::uint64_t lanes = header.active_lanes; lanes != 0; lanes &= lanes - 1) {
    auto& slot = payload.slots[std::countr_zero(lanes)];
    if (header.service == service_printf) {
      message(slot);
    } else {
      ++refused;
      slot[0] = slot[1] = 0;
    }
  }
}

bool HostCalls::serve() {
  std::uint64_t waiting = std::atomic_ref(buffer_->ready_stack).exchange(0, std::memory_order_acquire);
  if (waiting == 0) return false;
  // Addresses are ours, not the buffer's: a kernel can write there. So can it make a circle of the list.
  auto* const headers = reinterpret_cast<HostCallHeader*>(buffer_ + 1);
  auto* const payloads =
      reinterpret_cast<HostCallPayload*>(reinterpret_cast<std::byte*>(buffer_) + payloads_at(packets_));
  for (std::size_t count = 0; waiting != 0 && count < packets_; ++count) {
    const std::size_t index = waiting & (packets_ - 1);
    HostCallHeader& header = headers[index];
    waiting = header.next;
    answer(header, payloads[index]);
    std::atomic_ref(header.control).fetch_and(~1u, std::memory_order_release);
  }
  return true;
}

void HostCalls::start() {
  if (running_.exchange(true)) return;
  thread_ = std::thread([this] {
    constexpr std::chrono::microseconds moment{50};
    while (running_.load(std::memory_order_relaxed)) {
      if (!serve()) std::this_thread::sleep_for(moment);
    }
  });
}

void HostCalls::stop() {
  running_ = false;
  if (thread_.joinable()) thread_.join();
}

}  // namespace kerncap::replay
