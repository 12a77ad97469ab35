// Programs that hardware would stop. `fault wild|host|freed|registered-and-freed|null|trap|device-from-host` must not end well.
#include <cstdlib>
#include <cstring>
#include <string>

#include "check.h"

__global__ void store(int* to) { *to = 1; }
__global__ void load(const int* from, int* to) { *to = *from; }
__global__ void stop() { __builtin_trap(); }

int main(int count, char** arguments) {
  const std::string kind = count > 1 ? arguments[1] : "";
  int* device = nullptr;
  HIP_OK(hipMalloc(&device, size_t{8} << 20));
  if (kind == "wild") {
    store<<<1, 1>>>(reinterpret_cast<int*>(0x123456789000));
  } else if (kind == "null") {
    store<<<1, 1>>>(nullptr);
  } else if (kind == "host") {
    static int ordinary[4096];
    store<<<1, 1>>>(ordinary + 2048);
  } else if (kind == "registered-and-freed") {
    const size_t bytes = size_t{8} << 20;  // large enough that free() gives it back to the system
    void* host = std::malloc(bytes);
    std::memset(host, 0, bytes);
    HIP_OK(hipHostRegister(host, bytes, hipHostRegisterMapped));
    void* seen = nullptr;
    HIP_OK(hipHostGetDevicePointer(&seen, host, 0));
    int* middle = static_cast<int*>(seen) + bytes / 8;
    store<<<1, 1>>>(middle);
    HIP_OK(hipDeviceSynchronize());
    EXPECT(static_cast<int*>(host)[bytes / 8] == 1);
    std::free(host);
    store<<<1, 1>>>(middle);
  } else if (kind == "freed") {
    HIP_OK(hipFree(device));
    load<<<1, 1>>>(device, device);
  } else if (kind == "trap") {
    stop<<<1, 1>>>();
  } else if (kind == "device-from-host") {
    std::printf("%d\n", *device);  // SIGSEGV: device memory has no host address
    return 0;
  } else {
    return 2;
  }
  std::printf("the runtime says: %s\n", hipGetErrorString(hipDeviceSynchronize()));
  return 0;
}
