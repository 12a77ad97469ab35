// Every way to write a kernel that the finder must know. Compiled without the HIP headers; `// @NAME` marks the first line
// of what the test looks for, `// @end` the last.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ dim3(unsigned a, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void* = nullptr);
extern "C" int __hipPopCallConfiguration(dim3*, dim3*, unsigned long*, void*);
#include "corpus_header.h"

// @primary
template <class T, int N>
__global__ void templated(T* out) {
  out[0] = T(N);
}  // @end

// @explicit
template <>
__global__ void templated<double, 7>(double* out) {
  out[0] = 77;
}  // @end

// @partial
template <class T>
struct Maker {
  static __device__ T make() { return T(1); }
};
template <class T>
struct Maker<T*> {
  static __device__ T* make() { return nullptr; }
};
template <class T>
__global__ void through_partial(T* out) {
  out[0] = Maker<T>::make();
}

// @macro_definition
#define DEFINE_KERNEL(name, type) \
  __global__ void name(type* p) { p[0] = (type)3; }
DEFINE_KERNEL(made_by_macro, unsigned short)  // @macro @end

// @attributes
__attribute__((used)) __launch_bounds__(256, 2) __global__ static void
bounded(const long long* __restrict__ in,
        long long* __restrict__ out) {
  out[0] = in[0];
}  // @end

// @c_linkage
extern "C" __global__ void c_kernel(signed char* bytes) { bytes[0] = 1; }  // @end

namespace {
// @anonymous
__global__ void hidden(_Float16* p) {
  p[0] = 1;
}  // @end
}  // namespace

// @overload_int
__global__ void overloaded(int* p) { p[0] = 1; }  // @end
// @overload_float
__global__ void overloaded(float* p) { p[0] = 2; }  // @end

// @launcher
template <class F>
__global__ void launch(F body, int n) {
  body(n);
}  // @end

struct Functor {
  float* data;
  const double* weights;
  int count;
  __device__ void operator()(int i) const { data[i] = float(weights[i]) * float(helper_of_helper(i)); }
};

template <class... T>
__global__ void variadic(T... values) {
  int sum = 0;
  int each[] = {(sum += int(values))...};
  (void)each;
}

namespace outer::inner {
struct Class {
  // @member
  template <class T>
  static __global__ void member(T* p) {
    p[0] = T(5);
  }  // @end
};
}  // namespace outer::inner

typedef float real;
struct alignas(16) Vector4 {
  float x, y, z, w;
};
enum class Colour : unsigned char { red };
__global__ void types(real* a, Vector4* b, void* c, const bool* d, Colour* e, unsigned long long f, Functor g, int (*h)[4]) {
  a[0] = b->x;
  (void)c; (void)d; (void)e; (void)f; (void)g; (void)h;
}

// @nameless
__global__ void nameless(int*, float) {}  // @end

#line 500 "generator/input.y"
__global__ void from_generator(int* p) { p[0] = 9; }

void use(float* f, double* d, int n) {
  templated<float, 3><<<1, 1>>>(f);
  templated<double, 7><<<1, 1>>>(d);
  through_partial<float><<<1, 1>>>(f);
  made_by_macro<<<1, 1>>>(nullptr);
  bounded<<<1, 1>>>(nullptr, nullptr);
  c_kernel<<<1, 1>>>(nullptr);
  hidden<<<1, 1>>>(nullptr);
  launch<<<1, 1>>>(Functor{f, d, n}, n);
  launch<<<1, 1>>>([=] __device__(int i) { f[i] = float(d[i]); }, n);
  launch<<<1, 1>>>([=] __device__(int i) { f[i] = 1; }, n);
  variadic<<<1, 1>>>(1, 2.0f, 3.0);
  outer::inner::Class::member<<<1, 1>>>(f);
  in_header<<<1, 1>>>(f);
  from_generator<<<1, 1>>>(nullptr);
}
