// Slices, with the real compiler as the judge of whether the kernel stayed the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "emit/application_for_test.h"

namespace kerncap::emit {
namespace {

using testing::Application;
using testing::build_kernel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A launcher that instantiates many kernels, as libraries have them: the bulk of the compiler's work.
constexpr const char* header = R"(#pragma once
#include <hip/hip_runtime.h>
namespace library {
enum class Kind : unsigned char { small = 3, large = 200 };
typedef float (*Operation)(const float&, int);
namespace {
__device__ __forceinline__ float twice(const float& x, int) { return x * 2; }
__device__ __forceinline__ float plus(const float& x, int n) { return x + n; }
template <int N, Kind kind, class T, Operation op>
__launch_bounds__(256) static __global__ void apply(const void* __restrict__ in, T* out, const int n) {
  __shared__ T part[256];
  part[threadIdx.x] = 0;
  for (int i = threadIdx.x; i < n; i += 256) {
#pragma unroll
    for (int j = 0; j < N; ++j) part[threadIdx.x] += op(((const float*)in)[i * N + j], n) * int(kind);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] + part[255];
}
template <class T>
__global__ void fill(T* out, T value) { out[threadIdx.x] = value; }
}  // namespace
template <Kind kind>
void launch(int n, const float* in, float* out) {
  switch (n) {
    case 1: apply<1, kind, float, twice><<<1, 256>>>(in, out, n); break;
    case 2: apply<2, kind, float, twice><<<1, 256>>>(in, out, n); break;
    case 3: apply<3, kind, float, plus><<<1, 256>>>(in, out, n); break;
    case 4: apply<4, kind, float, plus><<<1, 256>>>(in, out, n); break;
    case 5: apply<8, kind, float, twice><<<1, 256>>>(in, out, n); break;
    case 6: apply<16, kind, float, twice><<<1, 256>>>(in, out, n); break;
    case 7: apply<32, kind, float, plus><<<1, 256>>>(in, out, n); break;
    case 8: apply<64, kind, float, plus><<<1, 256>>>(in, out, n); break;
  }
}
}  // namespace library
)";

constexpr const char* source = R"(#include "library.h"
__constant__ float weights[4];
// Copyright of somebody else.
__global__ void other(float* p) {
  for (int i = 0; i < 100; ++i) p[threadIdx.x + i] = sinf(p[i]) * weights[i % 4] + powf(p[i + 1], 3.3f);
}
template void library::launch<library::Kind::small>(int, const float*, float*);
int host_only(int n) {
#define USED_LATER(x) ((x) + 1)
  return USED_LATER(n);
}
constexpr int table(int n) { return n * 3; }
auto deduced(float* p) { return p; }
template <class F>
__global__ void run(F body, int n) { body(n + table(2)); }
template <class T>
void each(T* p, int n) {
  auto body = [=] __device__(int i) { p[i] = T(i) + USED_LATER(n); };
  run<<<1, 1>>>(body, n);
}
void go(float* p, int n) {
  library::launch<library::Kind::large>(n, p, p);
  other<<<1, 64>>>(p);
  library::fill<float><<<1, 1>>>(deduced(p), 1.0f);
  each(p, host_only(n));
}
)";

class Slicing : public ::testing::Test {
 protected:
  void compile(std::vector<std::string> more = {}) {
    application_.write("include/library.h", header);
    application_.write("src/app.hip", source);
    std::vector<std::string> argv{KERNCAP_TEST_HIPCC_PATH,
                                  "--offload-arch=gfx90a",
                                  "-O3",
                                  "-std=c++17",
                                  "-I../include",
                                  "-c",
                                  "../src/app.hip",
                                  "-o",
                                  "app.o"};
    argv.insert(argv.end(), more.begin(), more.end());
    application_.compile(argv, "build");
  }

  EmitReport emit_slice_of(const std::string& kernel) {
    auto options = application_.options(application_.snapshot_of("build/app.o", "gfx90a", kernel));
    options.slice = true;
    options.replace = true;
    return emit_project(options);
  }

  std::string text(const EmitReport& report, const char* file) {
    return support::read_text_file(report.project / file);
  }

  Application application_;
};

TEST_F(Slicing, KeepsTheKernelAndLeavesOutTheOthers) {
  compile();
  const auto report = emit_slice_of("apply<3, (library::Kind)3");
  ASSERT_TRUE(report.slice.has_value());
  ASSERT_TRUE(report.slice->offered) << report.slice->reason;
  EXPECT_LT(report.slice->sliced, report.slice->whole);
  EXPECT_THAT(report.slice->files, ElementsAre("src/include/library.h", "src/src/app.hip"));
  EXPECT_EQ(text(report, "whole/src/src/app.hip"), source);
  EXPECT_EQ(text(report, "whole/src/include/library.h"), header);
  const std::string sliced = text(report, "src/src/app.hip");
  EXPECT_THAT(sliced, Not(HasSubstr("sinf")));
  EXPECT_THAT(sliced, HasSubstr("Copyright of somebody else"));
  EXPECT_THAT(sliced, HasSubstr("#define USED_LATER"));
  EXPECT_THAT(text(report, "src/include/library.h"), HasSubstr("part[threadIdx.x] += op("));
  EXPECT_EQ(build_kernel(report.project), report.slice->digest);
  EXPECT_NE(report.slice->digest, report.code_object);
}

TEST_F(Slicing, KeepsEveryLineWhereItWas) {
  compile();
  const auto report = emit_slice_of("apply<3, (library::Kind)3");
  ASSERT_TRUE(report.slice->offered) << report.slice->reason;
  const auto lines = [](const std::string& file) { return std::count(file.begin(), file.end(), '\n'); };
  EXPECT_EQ(lines(text(report, "src/include/library.h")), lines(header));
  EXPECT_EQ(lines(text(report, "src/src/app.hip")), lines(source) + 1);  // and the declaration of the instantiation
  ASSERT_TRUE(report.kernel.has_value());
  EXPECT_EQ(report.kernel->first_line, 9u);
}

TEST_F(Slicing, FollowsAnEdit) {
  compile();
  const auto report = emit_slice_of("apply<2, (library::Kind)200");
  ASSERT_TRUE(report.slice->offered) << report.slice->reason;
  EXPECT_EQ(build_kernel(report.project), report.slice->digest);
  std::string edited = text(report, "src/include/library.h");
  const auto at = edited.find("part[0] + part[255]");
  ASSERT_NE(at, std::string::npos);
  support::write_file_atomically(report.project / "src/include/library.h", edited.replace(at, 7, "part[1]"), 0644);
  const auto digest = build_kernel(report.project);
  EXPECT_EQ(digest.size(), 64u) << digest;
  EXPECT_NE(digest, report.slice->digest);
}

TEST_F(Slicing, KeepsTheFunctionsThatMakeAKernelOfALambda) {
  compile();
  const auto report = emit_slice_of("run<");
  ASSERT_TRUE(report.slice->offered) << report.slice->reason;
  const std::string sliced = text(report, "src/src/app.hip");
  EXPECT_THAT(sliced, HasSubstr("each(p, host_only(n))"));
  EXPECT_THAT(sliced, HasSubstr("T(i) + USED_LATER(n)"));
  EXPECT_THAT(sliced, Not(HasSubstr("sinf")));
}

TEST_F(Slicing, WorksForKernelsThatAreNoTemplates) {
  compile();
  const auto report = emit_slice_of("other");
  ASSERT_TRUE(report.slice->offered) << report.slice->reason;
  EXPECT_THAT(text(report, "src/src/app.hip"), HasSubstr("sinf"));
  EXPECT_THAT(text(report, "src/src/app.hip"), Not(HasSubstr("each(p, host_only(n))")));
}

TEST_F(Slicing, DoesNotTurnItsOwnWarningsIntoErrors) {
  compile({"-Wall", "-Wextra", "-Werror", "-Wmissing-noreturn", "-Wno-unused-parameter", "-Wno-unused-function"});
  const auto report = emit_slice_of("apply<3, (library::Kind)3");
  EXPECT_TRUE(report.slice->offered) << report.slice->reason;
}

TEST_F(Slicing, IsRefusedWhenTheKernelIsAllThereIs) {
  application_.write("src/app.hip", "#include <hip/hip_runtime.h>\n__global__ void only(int* p) { *p = 1; }\n");
  application_.compile({KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "-c", "src/app.hip", "-o", "build.o"});
  auto options = application_.options(application_.snapshot_of("build.o", "gfx90a", "only"));
  options.slice = true;
  const auto report = emit_project(options);
  EXPECT_FALSE(report.slice->offered);
  EXPECT_THAT(report.slice->reason, HasSubstr("has nothing that the kernel does not need"));
  EXPECT_EQ(build_kernel(report.project), report.code_object);
}

// With one caller left, its constant argument goes into the function that is called: another kernel, so no slice.
TEST_F(Slicing, IsRefusedAndTakenBackWhenTheCompilerWouldMakeAnotherKernel) {
  application_.write("src/app.hip", R"(#include <hip/hip_runtime.h>
static __device__ __attribute__((noinline)) int work(int* p, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += p[i] * i;
  return sum;
}
__global__ void first(int* p) { *p = work(p, 3); }
__global__ void second(int* p) { *p = work(p, p[4]); }
)");
  application_.compile({KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "-O2", "-c", "src/app.hip", "-o", "build.o"});
  auto options = application_.options(application_.snapshot_of("build.o", "gfx90a", "first"));
  options.slice = true;
  const std::string before = support::read_text_file(application_.sources() / "src/app.hip");
  const auto report = emit_project(options);
  ASSERT_TRUE(report.slice.has_value());
  EXPECT_FALSE(report.slice->offered);
  EXPECT_THAT(report.slice->reason, HasSubstr("the compiler makes another kernel"));
  EXPECT_EQ(report.slice->files.size(), 0u);
  EXPECT_EQ(build_kernel(report.project), report.code_object);
  EXPECT_FALSE(std::filesystem::exists(report.project / "whole"));
}

TEST_F(Slicing, NeedsTheRebuildCheck) {
  compile();
  auto options = application_.options(application_.snapshot_of("build/app.o", "gfx90a", "other"));
  options.slice = true;
  options.rebuild_check = false;
  EXPECT_THROW(emit_project(options), support::Error);
}

TEST_F(Slicing, SaysThatThereAreNoSources) {
  compile();
  auto options = application_.options(application_.snapshot_of("build/app.o", "gfx90a", "other"));
  options.slice = true;
  options.database.clear();
  const auto report = emit_project(options);
  EXPECT_EQ(report.slice->reason, "there are no sources to slice");
}

}  // namespace
}  // namespace kerncap::emit
