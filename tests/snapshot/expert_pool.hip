// What a language-model server does with memory: a caching allocator that hands out parts of large blocks and never gives
// them back, and the weights of many experts that a kernel reaches only through a table of device pointers.
// usage: expert_pool [MIB] [STEPS]
//   MIB    weights of all experts together, a third of it again for a model that the kernel does not touch
// Prints "name address-or-number" lines and, last, "sum" of what the kernel computed; checks every step on the host.
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#define CHECK(call)                                                               \
  do {                                                                            \
    if (const hipError_t error = (call); error != hipSuccess) {                   \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(error));          \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

constexpr std::uint32_t experts = 16, tokens = 64, width = 256;

struct Expert {
  const float* weights;  // width of them are read, at an offset that the routing chooses
  std::uint64_t count;
};

// y[token] = weights of its expert * x: reads only a little of a large pool.
__global__ void mixture(const Expert* const* table, const std::uint32_t* routing, const float* x, float* y) {
  __shared__ float partial[width];
  const std::uint32_t token = blockIdx.x, lane = threadIdx.x;
  const Expert* expert = table[routing[2 * token]];
  const std::uint64_t offset = routing[2 * token + 1] % (expert->count - width);
  partial[lane] = expert->weights[offset + lane] * x[token * width + lane];
  __syncthreads();
  for (std::uint32_t half = width / 2; half > 0; half /= 2) {
    if (lane < half) partial[lane] += partial[lane + half];
    __syncthreads();
  }
  if (lane == 0) y[token] += partial[0];
}

// Reads through an address that nothing in memory shows: the upper bits hold a tag.
__global__ void peek(std::uint64_t tagged, float* y) {
  const float* from = reinterpret_cast<const float*>(tagged & 0xffffffffffffull);
  y[threadIdx.x] = from[threadIdx.x];
}

// Blocks of the device's memory, cut into pieces of 512 bytes; freed pieces are handed out again, blocks never freed.
class CachingAllocator {
 public:
  void* allocate(std::uint64_t size) {
    size = (size + 511) / 512 * 512;
    auto best = free_.lower_bound(size);
    if (best == free_.end()) {
      const std::uint64_t block = size < (1u << 20) ? 2u << 20 : (size + (2u << 20) - 1) / (2u << 20) * (2u << 20);
      void* memory = nullptr;
      CHECK(hipMalloc(&memory, block));
      best = free_.emplace(block, static_cast<char*>(memory));
    }
    char* piece = best->second;
    const std::uint64_t rest = best->first - size;
    free_.erase(best);
    if (rest > 0) free_.emplace(rest, piece + size);
    sizes_[piece] = size;
    return piece;
  }
  void release(void* piece) {
    const auto found = sizes_.find(static_cast<char*>(piece));
    free_.emplace(found->second, found->first);
    sizes_.erase(found);
  }

 private:
  std::multimap<std::uint64_t, char*> free_;
  std::map<char*, std::uint64_t> sizes_;
};

std::uint64_t random_state = 88172645463325252ull;
std::uint64_t next_random() {  // xorshift64
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

std::vector<float> random_weights(std::uint64_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<std::int64_t>(next_random() >> 40) - (1 << 23)) / (1 << 23);
  return values;
}

template <typename T>
T* upload(CachingAllocator& allocator, const std::vector<T>& values) {
  T* device = static_cast<T*>(allocator.allocate(values.size() * sizeof(T)));
  CHECK(hipMemcpy(device, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  return device;
}

int main(int argc, char** argv) {
  const std::uint64_t mib = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 32;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 3;
  const std::uint64_t count = mib * (1 << 20) / sizeof(float) / experts;
  CachingAllocator allocator;

  // Activations of an earlier phase: freed, so that the pool has stale bytes and stale pointers in it.
  void* scratch = allocator.allocate(1 << 16);
  std::vector<std::vector<float>> weights;
  std::vector<Expert*> table;
  for (std::uint32_t e = 0; e < experts; ++e) {
    weights.push_back(random_weights(count));
    const float* on_device = upload(allocator, weights.back());
    table.push_back(upload(allocator, std::vector<Expert>{{on_device, count}}));
    if (e == 7) std::printf("weights %llu\n", static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(on_device)));
  }
  allocator.release(scratch);
  // Another model in the same process; in blocks of its own, because it does not go through the allocator.
  float* other = nullptr;
  const std::uint64_t other_bytes = mib * (1 << 20) / 3 / 4096 * 4096;
  CHECK(hipMalloc(reinterpret_cast<void**>(&other), other_bytes));
  const std::vector<float> noise = random_weights(other_bytes / sizeof(float));
  CHECK(hipMemcpy(other, noise.data(), other_bytes, hipMemcpyHostToDevice));
  std::printf("other %llu\n", static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(other)));

  Expert** device_table = upload(allocator, table);
  const std::vector<float> x = random_weights(tokens * width);
  float* device_x = upload(allocator, x);
  float* device_y = upload(allocator, std::vector<float>(tokens));
  std::printf("table %llu\n", static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(device_table)));

  std::vector<float> expected(tokens), y(tokens);
  for (int step = 0; step < steps; ++step) {
    std::vector<std::uint32_t> routing;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      routing.push_back(static_cast<std::uint32_t>(next_random() % experts));
      routing.push_back(static_cast<std::uint32_t>(next_random() >> 33));
    }
    std::uint32_t* device_routing = upload(allocator, routing);
    mixture<<<tokens, width>>>(device_table, device_routing, device_x, device_y);
    CHECK(hipGetLastError());
    CHECK(hipDeviceSynchronize());
    allocator.release(device_routing);  // the next step gets the same piece
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const std::vector<float>& w = weights[routing[2 * t]];
      const std::uint64_t offset = routing[2 * t + 1] % (count - width);
      std::vector<float> partial(width);
      for (std::uint32_t i = 0; i < width; ++i) partial[i] = w[offset + i] * x[t * width + i];
      for (std::uint32_t half = width / 2; half > 0; half /= 2)
        for (std::uint32_t i = 0; i < half; ++i) partial[i] += partial[i + half];
      expected[t] += partial[0];
    }
    CHECK(hipMemcpy(y.data(), device_y, tokens * sizeof(float), hipMemcpyDeviceToHost));
    for (std::uint32_t t = 0; t < tokens; ++t)
      if (y[t] != expected[t]) {
        std::fprintf(stderr, "step %d, token %u: %g instead of %g\n", step, t, y[t], expected[t]);
        return 1;
      }
  }
  float* device_peeked = upload(allocator, std::vector<float>(64));
  peek<<<1, 64>>>(reinterpret_cast<std::uint64_t>(other) | 0xab00000000000000ull, device_peeked);
  CHECK(hipMemcpy(y.data(), device_peeked, 64 * sizeof(float), hipMemcpyDeviceToHost));
  if (y[63] != noise[63]) return 1;
  double sum = 0;
  for (const float value : expected) sum += value;
  std::printf("sum %.9g\n", sum);
  return 0;
}
