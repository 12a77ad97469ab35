// rocPRIM's and, where it is installed, rocThrust's sort, scan and reduce, compiled from their headers, compared with the host.
#include <hip/hip_runtime.h>
#include <rocprim/rocprim.hpp>
#if __has_include(<thrust/device_vector.h>)
#define WITH_THRUST 1
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#define HIP_OK(call)                                                                                    \
  do {                                                                                                  \
    if (const hipError_t error = (call); error != hipSuccess) {                                         \
      std::fprintf(stderr, "primitives: %s (line %d): %s\n", #call, __LINE__, hipGetErrorString(error)); \
      std::exit(1);                                                                                     \
    }                                                                                                   \
  } while (false)

static bool everything = true;

static void judge(const char* what, bool good) {
  std::printf("%-44s %s\n", what, good ? "agrees" : "DIFFERS");
  std::fflush(stdout);
  everything &= good;
}

template <typename T>
static T* upload(const std::vector<T>& values) {
  T* device = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&device), values.size() * sizeof(T)));
  HIP_OK(hipMemcpy(device, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  return device;
}
template <typename T>
static std::vector<T> download(const T* device, size_t count) {
  std::vector<T> values(count);
  HIP_OK(hipMemcpy(values.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
  return values;
}

template <typename T>
static std::vector<T> numbers(size_t count) {
  std::vector<T> values(count);
  unsigned state = 7;
  for (T& value : values) value = static_cast<T>(static_cast<int>((state = state * 1664525u + 1013904223u) >> 12 & 0xffff) - 0x7000);
  return values;
}

// rocPRIM's calls say first how much temporary memory they want.
template <typename Call>
static void twice(Call call) {
  size_t bytes = 0;
  HIP_OK(call(nullptr, bytes));
  void* temporary = nullptr;
  HIP_OK(hipMalloc(&temporary, std::max<size_t>(bytes, 1)));
  HIP_OK(call(temporary, bytes));
  HIP_OK(hipDeviceSynchronize());
  HIP_OK(hipFree(temporary));
}

template <typename T>
static void rocprim_of(const char* type, size_t count) {
  const std::vector<T> input = numbers<T>(count);
  char text[96];
  const auto named = [&](const char* what) {
    std::snprintf(text, sizeof text, "rocPRIM %s of %zu %s", what, count, type);
    return text;
  };
  T *from = upload(input), *to = upload(std::vector<T>(count));

  twice([&](void* memory, size_t& bytes) { return rocprim::radix_sort_keys(memory, bytes, from, to, count); });
  std::vector<T> expected = input;
  std::sort(expected.begin(), expected.end());
  judge(named("radix sort"), download(to, count) == expected);

  std::vector<unsigned> places(count);
  std::iota(places.begin(), places.end(), 0u);
  unsigned *values = upload(places), *sorted_values = upload(places);
  twice([&](void* memory, size_t& bytes) { return rocprim::radix_sort_pairs(memory, bytes, from, to, values, sorted_values, count); });
  std::stable_sort(places.begin(), places.end(), [&](unsigned a, unsigned b) { return input[a] < input[b]; });
  judge(named("radix sort of pairs"), download(to, count) == expected && download(sorted_values, count) == places);

  twice([&](void* memory, size_t& bytes) { return rocprim::merge_sort(memory, bytes, from, to, count); });
  judge(named("merge sort"), download(to, count) == expected);

  // Numbers are integers of 16 bits, so that the order of additions does not matter for the first few thousand of them.
  twice([&](void* memory, size_t& bytes) { return rocprim::inclusive_scan(memory, bytes, from, to, count, rocprim::maximum<T>()); });
  std::inclusive_scan(input.begin(), input.end(), expected.begin(), [](T a, T b) { return std::max(a, b); });
  judge(named("inclusive scan (maximum)"), download(to, count) == expected);

  std::vector<T> small(count);
  for (size_t at = 0; at < count; ++at) small[at] = static_cast<T>(at % 3);
  HIP_OK(hipMemcpy(from, small.data(), count * sizeof(T), hipMemcpyHostToDevice));
  twice([&](void* memory, size_t& bytes) { return rocprim::exclusive_scan(memory, bytes, from, to, T(5), count, rocprim::plus<T>()); });
  std::exclusive_scan(small.begin(), small.end(), expected.begin(), T(5));
  judge(named("exclusive scan (sum)"), download(to, count) == expected);

  twice([&](void* memory, size_t& bytes) { return rocprim::reduce(memory, bytes, from, to, T(0), count, rocprim::plus<T>()); });
  judge(named("reduce"), download(to, 1)[0] == std::accumulate(small.begin(), small.end(), T(0)));
  for (void* memory : {static_cast<void*>(from), static_cast<void*>(to), static_cast<void*>(values), static_cast<void*>(sorted_values)})
    HIP_OK(hipFree(memory));
}

#ifdef WITH_THRUST
static void thrust_of(size_t count) {
  const std::vector<int> input = numbers<int>(count);
  thrust::device_vector<int> device(input.begin(), input.end());
  std::vector<int> expected = input, got(count);
  judge("rocThrust reduce", thrust::reduce(device.begin(), device.end(), 0) == std::accumulate(input.begin(), input.end(), 0));
  thrust::inclusive_scan(device.begin(), device.end(), device.begin());
  thrust::copy(device.begin(), device.end(), got.begin());
  std::inclusive_scan(input.begin(), input.end(), expected.begin());
  judge("rocThrust inclusive scan", got == expected);
  thrust::sort(device.begin(), device.end());
  thrust::copy(device.begin(), device.end(), got.begin());
  std::sort(expected.begin(), expected.end());
  judge("rocThrust sort", got == expected);
}
#endif

int main() {
  rocprim_of<int>("int", 50'000);
  rocprim_of<float>("float", 5'000);
  rocprim_of<unsigned long long>("64-bit unsigned", 3'000);
#ifdef WITH_THRUST
  thrust_of(20'000);
#endif
  std::puts(everything ? "all good" : "something differs");
  return everything ? 0 : 1;
}
