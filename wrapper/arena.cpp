// operator new and delete of kerncap-cc.
#include <stdlib.h>
#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "wrapper/bail_out.h"

// Memory: thousands of small strings that live as long as the process, which is a few milliseconds. They are cut from
// large blocks and never given back one by one; what is large (a log, a source) comes from malloc() and goes back.
namespace {

constexpr std::size_t alignment = alignof(std::max_align_t);
constexpr std::size_t block_size = std::size_t{1} << 18;
constexpr std::size_t large = std::size_t{1} << 15;

alignas(alignment) char first_block[std::size_t{1} << 16];
char* next_byte = first_block;
char* block_end = first_block + sizeof first_block;

// Each piece is preceded by its size, so that delete knows the large ones.
struct alignas(alignment) Head {
  std::size_t size;
};

void* allocate(std::size_t size) {
  const std::size_t whole = sizeof(Head) + (size + alignment - 1) / alignment * alignment;
  if (whole < size) return nullptr;
  Head* head = nullptr;
  if (whole >= large) {
    head = static_cast<Head*>(malloc(whole));
    if (head == nullptr) return nullptr;
  } else {
    if (static_cast<std::size_t>(block_end - next_byte) < whole) {
      void* block = mmap(nullptr, block_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (block == MAP_FAILED) return nullptr;
      next_byte = static_cast<char*>(block);
      block_end = next_byte + block_size;
    }
    head = static_cast<Head*>(static_cast<void*>(next_byte));
    next_byte += whole;
  }
  head->size = whole;
  return head + 1;
}

void release(void* memory) {
  if (memory == nullptr) return;
  Head* head = static_cast<Head*>(memory) - 1;
  if (head->size >= large) free(head);
}

}  // namespace

void* operator new(std::size_t size) {
  void* memory = allocate(size);
  if (memory == nullptr) kerncap::wrapper::bail_out("out of memory");
  return memory;
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
