#pragma once

#include <hip/hip_runtime.h>

#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace common {

// Throws when a HIP call failed, with the call and its place.
inline void check_hip(hipError_t status, const char* call, const char* file, int line) {
  if (status == hipSuccess) return;
  throw std::runtime_error(std::string(call) + " failed: " + hipGetErrorString(status) + " (" + file + ":" +
                           std::to_string(line) + ")");
}

#define HIP_CHECK(call) ::common::check_hip((call), #call, __FILE__, __LINE__)

// Device memory that is freed with its owner.
template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size) : size_(size) {
    if (size != 0) HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)));
  }
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size()) { upload(host); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) static_cast<void>(hipFree(data_));
  }

  void upload(const std::vector<T>& host) {
    if (host.size() != size_) throw std::logic_error("upload of another size");
    if (size_ != 0) HIP_CHECK(hipMemcpy(data_, host.data(), size_ * sizeof(T), hipMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> host(size_);
    if (size_ != 0) HIP_CHECK(hipMemcpy(host.data(), data_, size_ * sizeof(T), hipMemcpyDeviceToHost));
    return host;
  }
  void clear() {
    if (size_ != 0) HIP_CHECK(hipMemset(data_, 0, size_ * sizeof(T)));
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

inline unsigned blocks_for(std::size_t items, unsigned block) {
  return static_cast<unsigned>((items + block - 1) / block);
}

// Selects the device and prints its name. Throws when there is none.
inline void select_device(int device) {
  int devices = 0;
  if (hipGetDeviceCount(&devices) != hipSuccess || devices == 0) throw std::runtime_error("no GPU was found");
  HIP_CHECK(hipSetDevice(device));
  hipDeviceProp_t properties;
  HIP_CHECK(hipGetDeviceProperties(&properties, device));
  std::cout << "device " << device << ": " << properties.name << " (" << properties.gcnArchName << ")\n";
}

// Runs `body` (which returns whether the result is right) and turns exceptions into exit code 3.
template <typename Body>
int run_main(const char* program, Body&& body) {
  try {
    return body() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << '\n';
    return 3;
  }
}

}  // namespace common
