#include "softgpu/isa/code_cache.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <set>

#include "softgpu/isa/assembly_text.h"
#include "softgpu/isa/decode.h"

namespace kerncap::softgpu::isa {

const Operation* decode_now(Wave& w, const Operation* op) {
  const u64 pc = w.code->address_of(op);
  w.code->decode(const_cast<Operation&>(*op), pc);
  return op->execute.load(std::memory_order_acquire)(w, op);
}

const Operation* cross_page(Wave& w, const Operation* op) {
  const Operation* target = w.code->at(w.code->address_of(op));
  return target->execute.load(std::memory_order_acquire)(w, target);
}

namespace {

// KERNCAP_SOFTGPU_EXECUTED names a file that gets each executed mnemonic once: what softgpu_isa_coverage counts as
// executed by a program. Instructions are decoded when they are first executed.
void note_executed(const std::string& processor, const std::string& text) {
  static const char* const path = std::getenv("KERNCAP_SOFTGPU_EXECUTED");
  if (path == nullptr) return;
  static std::mutex mutex;
  static auto* known = new std::set<std::string>;
  const std::scoped_lock lock(mutex);
  const std::string line = processor + " " + parse_assembly(text).mnemonic + "\n";
  if (!known->insert(line).second) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }
}

const Operation* not_decodable(Wave& w, const Operation* op) {
  return w.fail(op, DispatchStatus::illegal_instruction, w.code->problem(w.code->address_of(op)));
}

}  // namespace

CodeCache::CodeCache(const Target& target, AddressSpace& memory, bool wave32)
    : target_(target), memory_(memory), wave32_(wave32), disassembler_(target.processor, wave32) {
  static_assert(sizeof(CodePage) <= page_alignment);
}

CodeCache::~CodeCache() {
  retire();
  for (const auto& entry : pages_) {
    entry.second->~CodePage();
    std::free(entry.second);
  }
}

CodePage* CodeCache::page(u64 number) {
  {
    const std::shared_lock lock(map_mutex_);
    if (const auto found = pages_.find(number); found != pages_.end()) return found->second;
  }
  const std::unique_lock lock(map_mutex_);
  CodePage*& entry = pages_[number];
  if (entry == nullptr) {
    void* memory = std::aligned_alloc(page_alignment, page_alignment);
    if (memory == nullptr) throw std::bad_alloc();
    auto* fresh = new (memory) CodePage;
    fresh->address = number << AddressSpace::page_bits;
    fresh->cache = this;
    for (unsigned i = 0; i < fresh->slots.size(); ++i)
      fresh->slots[i].execute.store(i < page_slots ? &decode_now : &cross_page, std::memory_order_relaxed);
    entry = fresh;
  }
  return entry;
}

const Operation* CodeCache::at(u64 program_counter) {
  CodePage* found = page(program_counter >> AddressSpace::page_bits);
  return &found->slots[(program_counter & (AddressSpace::page_size - 1)) / 4];
}

u64 address_of(const Wave&, const Operation* op) { return CodeCache::address_of(op); }

void CodeCache::invalidate(u64 address, u64 size) {
  const std::unique_lock lock(map_mutex_);
  for (auto entry = pages_.begin(); entry != pages_.end();) {
    const u64 begin = entry->second->address, end = begin + AddressSpace::page_size;
    if (size == 0 || (begin < address + size && address < end)) {
      retired_.push_back(entry->second);
      entry = pages_.erase(entry);
    } else {
      ++entry;
    }
  }
}

void CodeCache::retire() {
  const std::unique_lock lock(map_mutex_);
  for (CodePage* old : retired_) {
    old->~CodePage();
    std::free(old);
  }
  retired_.clear();
}

unsigned CodeCache::read_code(u64 program_counter, std::array<u8, 20>& bytes) const {
  unsigned count = 0;
  for (; count < bytes.size(); ++count) {
    const std::byte* from = memory_.translate(program_counter + count, permission_read);
    if (from == nullptr) break;
    bytes[count] = static_cast<u8>(*from);
  }
  return count;
}

const u32* CodeCache::constant_rows(u64 value) {
  auto found = constants_.find(value);
  if (found == constants_.end()) {
    auto* rows = static_cast<u32*>(std::aligned_alloc(64, 2 * row_lanes * sizeof(u32)));
    if (rows == nullptr) throw std::bad_alloc();
    for (unsigned i = 0; i < row_lanes; ++i) {
      rows[i] = static_cast<u32>(value);
      rows[i + row_lanes] = static_cast<u32>(value >> 32);
    }
    found = constants_.emplace(value, std::unique_ptr<u32[], void (*)(void*)>(rows, &std::free)).first;
  }
  return found->second.get();
}

void CodeCache::fill(Operation& slot, const Decoded& decoded) {
  slot.instruction = decoded.instruction;
  slot.rows = decoded.rows;
  slot.dwords = decoded.dwords;
  slot.destination_dwords = decoded.destination_dwords;
  slot.source_count = decoded.source_count;
  slot.flags = decoded.flags;
  slot.immediate = decoded.immediate;
  slot.destination = decoded.destination;
  slot.destination2 = decoded.destination2;
  slot.source = decoded.source;
  if (decoded.modified) {
    modifiers_.push_back(std::make_unique<Modifiers>(decoded.modifiers));
    slot.modifiers = modifiers_.back().get();
  }
  if (decoded.parts.size() == 2) {
    parts_.push_back(std::make_unique<std::array<Operation, 2>>());
    auto& pair = *parts_.back();
    for (unsigned k = 0; k < 2; ++k) {
      fill(pair[k], decoded.parts[k]);
      pair[k].execute.store(decoded.parts[k].execute, std::memory_order_relaxed);
    }
    slot.parts = pair.data();
  }
}

void CodeCache::decode(Operation& slot, u64 program_counter) {
  const std::scoped_lock lock(decode_mutex_);
  if (slot.execute.load(std::memory_order_relaxed) != &decode_now) return;  // another thread was faster
  std::array<u8, 20> bytes{};
  const unsigned available = read_code(program_counter, bytes);
  const auto text = disassembler_.decode({bytes.data(), available}, program_counter);
  Execute execute = &not_decodable;
  if (text.bytes != 0) {
    DecodeContext context{target_, wave32_, [this](u64 value) { return constant_rows(value); }};
    Decoded decoded = decode_text(text.text, text.bytes, {bytes.data(), text.bytes}, context);
    if (decoded.problem.empty()) {
      execute = decoded.execute;
      fill(slot, decoded);
      note_executed(target_.processor, text.text);
    }
  }
  slot.execute.store(execute, std::memory_order_release);
}

std::string CodeCache::describe(u64 program_counter) {
  const std::scoped_lock lock(decode_mutex_);
  std::array<u8, 20> bytes{};
  const unsigned available = read_code(program_counter, bytes);
  const auto text = disassembler_.decode({bytes.data(), available}, program_counter);
  if (text.bytes != 0) return text.text;
  if (available < 4) return "(no readable code)";
  return fmt::format("(bytes {:02x}{:02x}{:02x}{:02x})", bytes[3], bytes[2], bytes[1], bytes[0]);
}

std::string CodeCache::problem(u64 program_counter) {
  const std::scoped_lock lock(decode_mutex_);
  std::array<u8, 20> bytes{};
  const unsigned available = read_code(program_counter, bytes);
  if (available < 4) return "there is no readable code";
  const auto text = disassembler_.decode({bytes.data(), available}, program_counter);
  if (text.bytes == 0) return fmt::format("not an instruction of {}", target_.processor);
  DecodeContext context{target_, wave32_, [this](u64 value) { return constant_rows(value); }};
  return decode_text(text.text, text.bytes, {bytes.data(), text.bytes}, context).problem;
}

}  // namespace kerncap::softgpu::isa
