// Buffers with a format. The formats' names come from the assembler, and what they mean is read from the name; so the
// tables of numbers are checked against LLVM's.
#include <gtest/gtest.h>

#include "softgpu/isa/half_reference.h"
#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

struct Format {
  std::string name;            // "8_8_UNORM"
  std::vector<unsigned> bits;  // from the lowest component on
  std::string numeric;
  unsigned number = 0;  // in the encoding
  unsigned total() const {
    unsigned sum = 0;
    for (const unsigned b : bits) sum += b;
    return sum;
  }
  bool integer() const { return numeric == "UINT" || numeric == "SINT"; }
};

class TypedBuffers : public VectorCheck {
 protected:
  std::vector<Format> formats() {
    std::vector<Format> found;
    for (const char* layout : {"8", "16", "8_8", "32", "16_16", "10_11_11", "11_11_10", "10_10_10_2", "2_10_10_10",
                               "8_8_8_8", "32_32", "16_16_16_16", "32_32_32", "32_32_32_32"})
      for (const char* numeric : {"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"}) {
        Format format;
        format.numeric = numeric;
        std::string rest = layout;
        while (!rest.empty()) {  // names count from the highest bits on
          const auto underscore = rest.rfind('_');
          const std::string last = underscore == std::string::npos ? rest : rest.substr(underscore + 1);
          format.bits.push_back(static_cast<unsigned>(std::stoul(last)));
          rest = underscore == std::string::npos ? "" : rest.substr(0, underscore);
        }
        const bool wide = format.bits[0] == 32, small = format.bits[0] < 16 && format.bits.size() != 3;
        if (wide && !format.integer() && format.numeric != "FLOAT") continue;
        if (small && format.numeric == "FLOAT") continue;  // no such number
        format.name = bench.target().major >= 10
                          ? fmt::format("[BUF_FMT_{}_{}]", layout, numeric)
                          : fmt::format("[BUF_DATA_FORMAT_{},BUF_NUM_FORMAT_{}]", layout, numeric);
        const auto code =
            assemble(bench.target().processor, bench.lanes() == 32,
                     load_name("tbuffer", "xyzw", false) + " v[4:7], v2, s[8:11], 0 format:" + format.name + " offen");
        if (!code) continue;
        u32 word = 0;
        std::memcpy(&word, code->data(), 4);
        format.number = word >> 19 & 127;
        found.push_back(format);
      }
    return found;
  }
  std::string access_name(const char* prefix, const char* verb, const std::string& components, bool half, bool upper) {
    const bool rdna3 = bench.target().major >= 11;
    const std::string d16 = upper ? (rdna3 ? "_d16_hi" : "_d16_hi") : half ? "_d16" : "";
    return std::string(prefix) + "_" + verb + (rdna3 ? d16 + "_format_" : "_format" + d16 + "_") + components;
  }
  std::string load_name(const char* prefix, const std::string& components, bool half, bool upper = false) {
    return access_name(prefix, "load", components, half, upper);
  }
  static u64 raw(const std::byte* element, const Format& format, unsigned k) {
    unsigned at = 0;
    for (unsigned before = 0; before < k; ++before) at += format.bits[before];
    u64 value = 0;
    for (unsigned bit = 0; bit < format.bits[k]; ++bit)
      value |= u64{static_cast<unsigned>(element[(at + bit) / 8]) >> (at + bit) % 8 & 1} << bit;
    return value;
  }
  // The component as a register has it: bits of a float or an integer.
  static u32 component(const std::byte* element, const Format& format, unsigned k) {
    if (k >= format.bits.size()) return k == 3 ? (format.integer() ? 1u : 0x3f800000u) : 0;
    const unsigned bits = format.bits[k];
    const u64 value = raw(element, format, k);
    const i64 as_signed =
        value >> (bits - 1) & 1 ? static_cast<i64>(value) - (i64{1} << bits) : static_cast<i64>(value);
    const double most = static_cast<double>((u64{1} << bits) - 1),
                 most_signed = static_cast<double>((u64{1} << (bits - 1)) - 1);
    const auto single = [](double x) { return std::bit_cast<u32>(static_cast<float>(x)); };
    if (format.numeric == "UNORM") return single(static_cast<double>(value) / most);
    if (format.numeric == "SNORM") return single(std::max(static_cast<double>(as_signed) / most_signed, -1.0));
    if (format.numeric == "USCALED") return single(static_cast<double>(value));
    if (format.numeric == "SSCALED") return single(static_cast<double>(as_signed));
    if (format.numeric == "UINT") return static_cast<u32>(value);
    if (format.numeric == "SINT") return static_cast<u32>(as_signed);
    if (bits == 32) return static_cast<u32>(value);
    // 5 bits of exponent: halves, and unsigned floats without sign and with fewer digits.
    return single(
        static_cast<double>(value_of(half{static_cast<u16>(bits == 16 ? value : value << (bits == 11 ? 4 : 5))})));
  }
  u16 narrowed(u32 bits, const Format& format) {
    return format.integer() ? static_cast<u16>(bits)
                            : exact_half(static_cast<long double>(std::bit_cast<float>(bits))).bits;
  }
  void descriptor(const Format& format, u32 selects) {
    bench.wave().write64(8, bench.memory_address);
    bench.s(10) = static_cast<u32>(bench.memory_bytes);
    // GFX9 has the numeric format before the data format.
    const u32 number =
        bench.target().major >= 10 ? format.number << 12 : (format.number >> 4) << 12 | (format.number & 15) << 15;
    bench.s(11) = selects | number;
  }
  void fill(const Format& format) {
    bench.set_exec(mask = random() & bench.wave().all_lanes);
    for (unsigned i = 0; i < row_lanes; ++i) {
      bench.v(2)[i] = 16 * i;
      for (unsigned r = 4; r < 12; ++r) bench.v(r)[i] = 0x11112222;
      for (unsigned at = 0; at < 16; ++at) {
        auto byte = static_cast<std::byte>(random() & 0xff);
        if (format.numeric == "FLOAT" && format.bits[0] != 32) byte &= std::byte{0x6d};  // no NaN in any of them
        if (format.numeric == "FLOAT" && format.bits[0] == 32 && at % 4 == 3) byte &= std::byte{0x3f};
        if (format.numeric == "SNORM") byte |= std::byte{0x49};  // not the lowest number, which has two spellings
        bench.memory()[16 * i + at] = byte;
      }
    }
  }
  const std::byte* element(unsigned lane) { return bench.memory() + 16 * lane; }
  bool active(unsigned lane) const { return mask >> lane & 1; }
  u64 mask = 0;
  static constexpr u32 identity = 4 | 5 << 3 | 6 << 6 | 7 << 9;
};

TEST_P(TypedBuffers, loads_and_stores_of_every_format) {
  const auto all = formats();
  EXPECT_GT(all.size(), 50u);
  const std::string letters = "xyzw";
  for (const Format& format : all)
    for (const char* prefix : {"tbuffer", "buffer"})
      for (unsigned count = 1; count <= 4; ++count)
        for (const bool half : {false, true}) {
          const std::string components = letters.substr(0, count);
          const unsigned registers = half ? (count + 1) / 2 : count;
          const std::string data = registers == 1 ? "v4" : fmt::format("v[4:{}]", 3 + registers);
          const std::string tail =
              std::string(", v2, s[8:11], 0") + (*prefix == 't' ? " format:" + format.name : "") + " offen";
          descriptor(format, identity);
          fill(format);
          const std::string load = load_name(prefix, components, half) + " " + data + tail;
          ASSERT_TRUE(bench.run(load)) << load;
          ASSERT_FALSE(bench.failed()) << load << ": " << bench.error().message;
          ++checked;
          for (unsigned lane = 0; lane < bench.lanes(); ++lane)
            for (unsigned k = 0; k < count; ++k) {
              const u32 wanted = component(element(lane), format, k);
              const u32 got = half ? bench.v(4 + k / 2)[lane] >> 16 * (k % 2) & 0xffff : bench.v(4 + k)[lane];
              if (!active(lane))
                ASSERT_EQ(bench.v(4 + (half ? k / 2 : k))[lane], 0x11112222u) << load;
              else
                ASSERT_EQ(got, half ? narrowed(wanted, format) : wanted)
                    << load << " " << format.name << " component " << k;
            }
          // What was loaded is stored again, as far as its components go.
          if (count < format.bits.size() || (half && format.total() / format.bits.size() > 10)) {
            const std::string text = access_name(prefix, "store", components, half, false) + " " + data + tail;
            ASSERT_TRUE(bench.run(text)) << text;
            ASSERT_FALSE(bench.failed()) << bench.error().message;
            for (unsigned lane = 0; lane < bench.lanes() && count < format.bits.size(); ++lane)
              if (active(lane)) {
                ASSERT_EQ(raw(element(lane), format, count), 0u) << text << ": components without data are zero";
              }
            continue;
          }
          const std::vector<std::byte> before(bench.memory(), bench.memory() + 16 * bench.lanes());
          for (unsigned lane = 0; lane < bench.lanes(); ++lane)
            if (active(lane)) std::memset(bench.memory() + 16 * lane, 0, format.total() / 8);
          const std::string store = access_name(prefix, "store", components, half, false) + " " + data + tail;
          ASSERT_TRUE(bench.run(store)) << store;
          ASSERT_FALSE(bench.failed()) << bench.error().message;
          ASSERT_EQ(std::memcmp(before.data(), bench.memory(), before.size()), 0) << store << " " << format.name;
        }
}

TEST_P(TypedBuffers, upper_halves_selects_and_bounds) {
  Format format;
  for (const Format& one : formats())
    if (one.bits == std::vector<unsigned>{8, 8, 8, 8} && one.numeric == "UINT") format = one;
  ASSERT_FALSE(format.name.empty());
  descriptor(format, identity);
  fill(format);
  ASSERT_TRUE(bench.run(load_name("buffer", "x", true, true) + " v4, v2, s[8:11], 0 offen"));
  for (unsigned lane = 0; lane < bench.lanes(); ++lane)
    EXPECT_EQ(bench.v(4)[lane], active(lane) ? 0x2222u | component(element(lane), format, 0) << 16 : 0x11112222u);
  for (unsigned lane = 0; lane < row_lanes; ++lane) bench.v(4)[lane] = lane << 16 | 0xff;
  ASSERT_TRUE(bench.run(access_name("buffer", "store", "x", true, true) + " v4, v2, s[8:11], 0 offen"));
  for (unsigned lane = 0; lane < bench.lanes(); ++lane)
    if (active(lane)) {
      EXPECT_EQ(static_cast<unsigned>(*element(lane)), lane);
    }
  // 0, 1, z, x.
  descriptor(format, 0 | 1 << 3 | 6 << 6 | 4 << 9);
  fill(format);
  bench.s(10) = 36;  // two elements and the third one's bytes are inside
  ASSERT_TRUE(bench.run(load_name("buffer", "xyzw", false) + " v[4:7], v2, s[8:11], 0 offen"));
  for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
    if (!active(lane)) continue;
    const bool inside = lane <= 2;
    EXPECT_EQ(bench.v(4)[lane], 0u);
    EXPECT_EQ(bench.v(5)[lane], inside ? 1u : 0u);
    EXPECT_EQ(bench.v(6)[lane], inside ? component(element(lane), format, 2) : 0u);
    EXPECT_EQ(bench.v(7)[lane], inside ? component(element(lane), format, 0) : 0u);
  }
  bench.s(11) = identity;  // no format
  ASSERT_TRUE(bench.run(load_name("buffer", "x", false) + " v4, v2, s[8:11], 0 offen"));
  EXPECT_EQ(bench.error().status, DispatchStatus::illegal_instruction);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(TypedBuffers);

}  // namespace
}  // namespace kerncap::softgpu::isa
