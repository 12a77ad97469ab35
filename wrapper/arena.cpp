// The memory of kerncap-cc: a process of one thread and a few milliseconds that needs thousands of small pieces and a
// few large ones. What it must not do is to touch many pages (each costs a fault, 0.7 us and more) or to give memory
// back to the system. So pieces are cut from one block after the other and kept for reuse by size; only what is larger
// than `largest_kept` goes back.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "wrapper/bail_out.h"

namespace {

constexpr std::size_t alignment = alignof(std::max_align_t);
constexpr std::size_t step = 32;                            // sizes up to 1 KiB are multiples of it,
constexpr std::size_t largest_stepped = 1024;               // above they are powers of two
constexpr std::size_t largest_kept = std::size_t{1} << 15;  // and from here on they are the system's
constexpr std::size_t block_size = std::size_t{1} << 17;
constexpr unsigned stepped_classes = largest_stepped / step;
constexpr unsigned classes = stepped_classes + std::bit_width(largest_kept) - std::bit_width(largest_stepped);
constexpr unsigned no_class = classes;

// In front of each piece.
struct alignas(alignment) Head {
  std::size_t size;  // of the piece, without its head
  unsigned kind;
};
struct FreePiece {
  FreePiece* next;
};

alignas(alignment) char first_block[std::size_t{1} << 16];
char* next_byte = first_block;
char* block_end = first_block + sizeof first_block;
FreePiece* free_pieces[classes];

void* from_system(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* allocate(std::size_t wanted) {
  if (wanted > largest_kept) {
    if (wanted > PTRDIFF_MAX - sizeof(Head)) return nullptr;
    // Not populated: a large buffer may be an upper bound.
    void* memory = mmap(nullptr, wanted + sizeof(Head), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Head{.size = wanted, .kind = no_class} + 1;
  }
  const bool stepped = wanted <= largest_stepped;
  const std::size_t size =
      stepped ? (wanted + step - 1) / step * step + (wanted == 0 ? step : 0) : std::bit_ceil(wanted);
  const unsigned kind = static_cast<unsigned>(
      stepped ? size / step - 1
              : stepped_classes + static_cast<unsigned>(std::bit_width(size) - std::bit_width(largest_stepped)) - 1);
  if (FreePiece* piece = free_pieces[kind]) {
    free_pieces[kind] = piece->next;
    return piece;
  }
  const std::size_t whole = sizeof(Head) + size;
  if (static_cast<std::size_t>(block_end - next_byte) < whole) {
    const std::size_t block = whole > block_size / 4 ? whole : block_size;
    void* memory = from_system(block);
    if (memory == nullptr) return nullptr;
    if (block == whole) return new (memory) Head{.size = size, .kind = kind} + 1;
    next_byte = static_cast<char*>(memory);
    block_end = next_byte + block;
  }
  Head* head = new (next_byte) Head{.size = size, .kind = kind};
  next_byte += whole;
  return head + 1;
}

Head* head_of(void* memory) { return static_cast<Head*>(memory) - 1; }

void release(void* memory) {
  if (memory == nullptr) return;
  Head* head = head_of(memory);
  if (head->kind == no_class) {
    munmap(head, head->size + sizeof(Head));
  } else {
    FreePiece*& first = free_pieces[head->kind];
    first = new (memory) FreePiece{.next = first};
  }
}

void* or_error(void* memory) {
  if (memory == nullptr) errno = ENOMEM;
  return memory;
}

}  // namespace

// In place of the C library's, for zstd.
extern "C" {
void* malloc(std::size_t size) { return or_error(allocate(size)); }
void free(void* memory) { release(memory); }
void* calloc(std::size_t count, std::size_t size) {
  std::size_t whole = 0;
  if (__builtin_mul_overflow(count, size, &whole)) return or_error(nullptr);
  void* memory = malloc(whole);
  if (memory != nullptr) memset(memory, 0, whole);
  return memory;
}
void* realloc(void* memory, std::size_t size) {
  if (memory == nullptr) return malloc(size);
  const std::size_t before = head_of(memory)->size;
  if (size <= before && before <= largest_kept) return memory;
  void* larger = malloc(size);
  if (larger == nullptr) return nullptr;
  memcpy(larger, memory, before < size ? before : size);
  free(memory);
  return larger;
}
// Nobody here asks for more than malloc() gives.
void* aligned_alloc(std::size_t boundary, std::size_t size) {
  return boundary <= alignment ? malloc(size) : or_error(nullptr);
}
void* memalign(std::size_t boundary, std::size_t size) { return aligned_alloc(boundary, size); }
}

void* operator new(std::size_t size) {
  void* memory = allocate(size);
  if (memory == nullptr) kerncap::wrapper::bail_out("out of memory");
  return memory;
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
