// Decoded code, page by page of 4 KiB: one slot for each dword of code, decoded when it is first executed.
//
// Slots lie in program order, so that the next operation is `op + op->dwords`; the slots past a page's end lead to the
// next page. Threads share a cache: an operation's `execute` is published last. invalidate() only takes pages out of
// the map; waves that are inside a page keep it until retire() is told that none is left.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "softgpu/isa/disassembler.h"
#include "softgpu/isa/wave.h"

namespace kerncap::softgpu::isa {

struct Decoded;

inline constexpr unsigned page_slots = AddressSpace::page_size / 4;
inline constexpr unsigned longest_instruction = 5;      // dwords: VOP3 + literal is 3, gfx10's MIMG with NSA 5
inline constexpr std::size_t page_alignment = 1 << 18;  // an operation's page is found by masking its address

struct CodePage {
  u64 address = 0;
  CodeCache* cache = nullptr;
  std::array<Operation, page_slots + longest_instruction> slots;

  static const CodePage* of(const Operation* op) {
    return reinterpret_cast<const CodePage*>(reinterpret_cast<std::uintptr_t>(op) & ~(page_alignment - 1));
  }
};

class CodeCache {
 public:
  CodeCache(const Target& target, AddressSpace& memory, bool wave32);
  ~CodeCache();

  // The operation at a program counter; never nullptr (what cannot be decoded fails when it is executed).
  const Operation* at(u64 program_counter);
  static u64 address_of(const Operation* op) {
    const CodePage* page = CodePage::of(op);
    return page->address + static_cast<u64>(op - page->slots.data()) * 4;
  }
  // The operation `dwords` away.
  const Operation* relative(const Operation* op, i32 dwords) {
    const CodePage* page = CodePage::of(op);
    const i64 slot = (op - page->slots.data()) + dwords;
    if (slot >= 0 && slot < page_slots) [[likely]]
      return &page->slots[static_cast<std::size_t>(slot)];
    return at(page->address + static_cast<u64>(slot * 4));
  }
  void invalidate(u64 address, u64 size);
  void retire();  // no wave of this cache is running
  // "s_mov_b32 s0, s1" for messages.
  std::string describe(u64 program_counter);
  // Why an operation could not be decoded.
  std::string problem(u64 program_counter);
  bool wave32() const { return wave32_; }
  const Target& target() const { return target_; }

 private:
  friend const Operation* decode_now(Wave&, const Operation*);
  friend const Operation* cross_page(Wave&, const Operation*);

  CodePage* page(u64 number);
  void decode(Operation& slot, u64 program_counter);
  void fill(Operation& slot, const Decoded& decoded);
  unsigned read_code(u64 program_counter, std::array<u8, 20>& bytes) const;
  const u32* constant_rows(u64 value);

  const Target& target_;
  AddressSpace& memory_;
  bool wave32_;
  std::shared_mutex map_mutex_;
  std::unordered_map<u64, CodePage*> pages_;
  std::vector<CodePage*> retired_;
  std::mutex decode_mutex_;
  Disassembler disassembler_;
  std::map<u64, std::unique_ptr<u32[], void (*)(void*)>> constants_;
  std::vector<std::unique_ptr<Modifiers>> modifiers_;
  std::vector<std::unique_ptr<std::array<Operation, 2>>> parts_;
};

}  // namespace kerncap::softgpu::isa
