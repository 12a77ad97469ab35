#pragma once

#include <hip/hip_runtime.h>

#include "stencil/wave.h"

namespace stencil {

// Puts the weights and the grid's shape into constant memory, for all later steps.
void set_constants(const Grid& grid);

// next = 2 current - next + velocity_squared * laplace(current): `next` holds the previous field and is overwritten.
void wave_step(const Grid& grid, const float* current, float* next, const float* velocity_squared, hipStream_t stream);

// Adds the amplitude to one point and counts the injection.
void inject(float* field, std::size_t index, float amplitude, hipStream_t stream);

// How often inject() ran on the device.
unsigned injections();

}  // namespace stencil
