// What the end-to-end programs share: stop at the first thing that is not as it should be.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define HIP_OK(call)                                                                        \
  do {                                                                                      \
    const hipError_t status_ = (call);                                                      \
    if (status_ != hipSuccess) {                                                            \
      std::printf("FAILED line %d: %s: %s\n", __LINE__, #call, hipGetErrorString(status_)); \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (false)

#define EXPECT(condition)                                        \
  do {                                                           \
    if (!(condition)) {                                          \
      std::printf("FAILED line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                              \
    }                                                            \
  } while (false)
