// Real kernels, compiled by HIP's compiler at -O0 and -O3 for each target, against host references.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "softgpu/isa/test_gpu.h"

namespace kerncap::softgpu::isa {
namespace {

struct Build {
  const char* processor;
  const char* level;
};
void PrintTo(const Build& build, std::ostream* out) { *out << build.processor << "_" << build.level; }

class CompiledKernels : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::path(KERNCAP_ISA_KERNELS) /
                      (std::string("kernels_") + GetParam().processor + "_" + GetParam().level + ".hsaco");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no compiler built " << path;
    gpu.load(path.string());
  }
  void expect_done(const std::string& kernel, const TestGpu::Launch& launch) {
    const DispatchError error = gpu.run(kernel, launch);
    ASSERT_EQ(error.status, DispatchStatus::done) << error.message;
  }
  TestGpu gpu{GetParam().processor};
  std::mt19937 random{7};
};

TEST_P(CompiledKernels, vector_add_with_a_partial_last_workgroup) {
  const int n = 1000;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = 0.5f * i, b[i] = 3.25f * i;
  const auto a_at = gpu.upload(a), b_at = gpu.upload(b), c_at = gpu.allocate(4 * n);
  expect_done("vector_add", TestGpu::Launch{{1024, 1, 1}, {256, 1, 1}, {}}.add(a_at).add(b_at).add(c_at).add(n));
  const auto c = gpu.download<float>(c_at, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_P(CompiledKernels, vector_add_on_two_threads) {
  const int n = 100000;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = 0.5f * i, b[i] = 3.25f * i;
  const auto a_at = gpu.upload(a), b_at = gpu.upload(b), c_at = gpu.allocate(4 * n);
  TestGpu::Launch launch{{100096, 1, 1}, {256, 1, 1}, {}};
  launch.threads = 2;
  launch.seed = 3;
  expect_done("vector_add", launch.add(a_at).add(b_at).add(c_at).add(n));
  const auto c = gpu.download<float>(c_at, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_P(CompiledKernels, block_sum_through_lds_and_barriers) {
  const int n = 5000;
  std::vector<float> in(n);
  for (auto& x : in) x = static_cast<float>(random() % 64);
  const auto in_at = gpu.upload(in), out_at = gpu.allocate(4);
  expect_done("block_sum", TestGpu::Launch{{5120, 1, 1}, {256, 1, 1}, {}}.add(in_at).add(out_at).add(n));
  EXPECT_EQ(*gpu.host<float>(out_at), std::accumulate(in.begin(), in.end(), 0.0f));
}

TEST_P(CompiledKernels, warp_sum_through_shuffles) {
  std::vector<int> in(512);
  for (auto& x : in) x = static_cast<int>(random() % 1000) - 500;
  const auto in_at = gpu.upload(in), out_at = gpu.allocate(4);
  expect_done("warp_sum", TestGpu::Launch{{512, 1, 1}, {128, 1, 1}, {}}.add(in_at).add(out_at));
  EXPECT_EQ(*gpu.host<int>(out_at), std::accumulate(in.begin(), in.end(), 0));
}

TEST_P(CompiledKernels, matrix_product_in_tiles) {
  const int n = 48;
  std::vector<float> a(n * n), b(n * n);
  for (auto& x : a) x = static_cast<float>(random() % 9) - 4;
  for (auto& x : b) x = static_cast<float>(random() % 9) - 4;
  const auto a_at = gpu.upload(a), b_at = gpu.upload(b), c_at = gpu.allocate(4 * n * n);
  expect_done("matrix_product", TestGpu::Launch{{48, 48, 1}, {16, 16, 1}, {}}.add(a_at).add(b_at).add(c_at).add(n));
  const auto c = gpu.download<float>(c_at, n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      ASSERT_EQ(c[i * n + j], sum) << i << " " << j;
    }
}

TEST_P(CompiledKernels, histogram_with_lds_atomics) {
  std::vector<unsigned char> in(10000);
  std::vector<unsigned> expected(256);
  for (auto& x : in) ++expected[x = static_cast<unsigned char>(random())];
  const auto in_at = gpu.upload(in), out_at = gpu.allocate(1024);
  TestGpu::Launch launch{{1024, 1, 1}, {256, 1, 1}, {}};
  launch.threads = 2;
  expect_done("histogram", launch.add(in_at).add(out_at).add(10000));
  EXPECT_EQ(gpu.download<unsigned>(out_at, 256), expected);
}

TEST_P(CompiledKernels, recursion_with_a_stack) {
  const auto out_at = gpu.allocate(4 * 64);
  TestGpu::Launch launch{{64, 1, 1}, {64, 1, 1}, {}};
  launch.private_bytes = 16384;
  expect_done("recursion", launch.add(out_at));
  const auto out = gpu.download<int>(out_at, 64);
  const int expected[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 64; ++i) ASSERT_EQ(out[i], expected[i % 12]) << i;
}

TEST_P(CompiledKernels, private_arrays_with_computed_indices) {
  std::vector<int> in(64 * 32);
  for (auto& x : in) x = static_cast<int>(random() % 100);
  const auto in_at = gpu.upload(in), out_at = gpu.allocate(4 * 64);
  expect_done("private_array", TestGpu::Launch{{64, 1, 1}, {64, 1, 1}, {}}.add(in_at).add(out_at));
  const auto out = gpu.download<int>(out_at, 64);
  for (int t = 0; t < 64; ++t) {
    unsigned sum = 0;
    for (int i = 0; i < 32; ++i) sum = sum * 3 + static_cast<unsigned>(in[t * 32 + ((i * in[i]) & 31)]);
    ASSERT_EQ(out[t], static_cast<int>(sum)) << t;
  }
}

TEST_P(CompiledKernels, double_math_agrees_with_the_host) {
  const int n = 200;
  std::vector<double> in(n);
  std::uniform_real_distribution<double> distribution(-1000, 1000);
  for (auto& x : in) x = distribution(random);
  in[0] = 0, in[1] = -0.0, in[2] = 1, in[3] = 1e15, in[4] = 1e-300;
  const auto in_at = gpu.upload(in), out_at = gpu.allocate(64 * n);
  expect_done("double_math", TestGpu::Launch{{256, 1, 1}, {64, 1, 1}, {}}.add(in_at).add(out_at).add(n));
  const auto out = gpu.download<double>(out_at, 8 * n);
  for (int i = 0; i < n; ++i) {
    const double x = in[i], *r = &out[8 * i];
    EXPECT_EQ(r[0], x / 3.7) << x;
    EXPECT_EQ(r[1], std::sqrt(std::fabs(x))) << x;
    if (x < 7e4)
      EXPECT_NEAR(r[2], std::exp(x * 0.01), 1e-15 * std::exp(x * 0.01)) << x;
    else
      EXPECT_EQ(r[2], std::exp(x * 0.01)) << x;
    EXPECT_NEAR(r[3], std::log(std::fabs(x) + 1), 1e-15 * std::log(std::fabs(x) + 1)) << x;
    EXPECT_NEAR(r[4], std::sin(x), 2.3e-16) << x;
    EXPECT_EQ(r[5], std::fma(x, x, -1.0)) << x;
    EXPECT_EQ(r[6], std::floor(x) + std::fmin(x, 1.0)) << x;
    EXPECT_EQ(r[7], static_cast<double>(static_cast<long long>(x))) << x;
  }
}

TEST_P(CompiledKernels, float_math_agrees_with_the_host) {
  const int n = 200;
  std::vector<float> in(n);
  std::uniform_real_distribution<float> distribution(-100, 100);
  for (auto& x : in) x = distribution(random);
  in[0] = 0, in[1] = -0.0f, in[2] = 1;
  const auto in_at = gpu.upload(in), out_at = gpu.allocate(32 * n);
  expect_done("float_math", TestGpu::Launch{{256, 1, 1}, {64, 1, 1}, {}}.add(in_at).add(out_at).add(n));
  const auto out = gpu.download<float>(out_at, 8 * n);
  for (int i = 0; i < n; ++i) {
    const float x = in[i], *r = &out[8 * i];
    const auto near = [x](float got, double wanted) {
      EXPECT_NEAR(got, wanted, 4e-7 * std::max(std::fabs(wanted), 1e-3)) << x;
    };
    EXPECT_EQ(r[0], x / 3.7f) << x;
    EXPECT_EQ(r[1], std::sqrt(std::fabs(x))) << x;
    near(r[2], std::exp(static_cast<double>(x * 0.01f)));
    near(r[3], std::log(static_cast<double>(std::fabs(x) + 1)));
    near(r[4], std::sin(static_cast<double>(x)));
    near(r[5], std::cos(static_cast<double>(x * 1000.0f)));
    EXPECT_NEAR(r[6], std::pow(static_cast<double>(std::fabs(x)), 1.3), 1e-6 * std::pow(std::fabs(x), 1.3)) << x;
    near(r[7], std::tanh(static_cast<double>(x * 0.1f)));
  }
}

TEST_P(CompiledKernels, integer_division_of_both_widths) {
  const int n = 200;
  std::vector<long long> a(n), b(n);
  std::mt19937_64 wide(5);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<long long>(wide() >> (i % 60));
    b[i] = static_cast<long long>(wide() >> (i * 7 % 63)) * (i % 2 ? 1 : -1);
    if (b[i] == 0) b[i] = 1;
  }
  const auto a_at = gpu.upload(a), b_at = gpu.upload(b), out_at = gpu.allocate(48 * n);
  expect_done("integer_division", TestGpu::Launch{{256, 1, 1}, {64, 1, 1}, {}}.add(a_at).add(b_at).add(out_at).add(n));
  const auto out = gpu.download<long long>(out_at, 6 * n);
  for (int i = 0; i < n; ++i) {
    const long long x = a[i], y = b[i], *r = &out[6 * i];
    ASSERT_EQ(r[0], x / y) << x << " " << y;
    ASSERT_EQ(r[1], x % y) << x << " " << y;
    ASSERT_EQ(r[2], static_cast<long long>(static_cast<unsigned long long>(x) / static_cast<unsigned long long>(y)));
    ASSERT_EQ(r[3], static_cast<long long>(
                        static_cast<int>(static_cast<long long>(static_cast<int>(x)) / (static_cast<int>(y) | 1))));
    ASSERT_EQ(r[4], static_cast<long long>(static_cast<unsigned>(x) % (static_cast<unsigned>(y) | 1u)));
    ASSERT_EQ(r[5], std::popcount(static_cast<unsigned long long>(x)) +
                        std::countl_zero(static_cast<unsigned long long>(y)) + (x >> (y & 63)));
  }
}

TEST_P(CompiledKernels, grid_barrier_ends_although_early_workgroups_spin) {
  const int groups = 24;
  const auto arrived_at = gpu.allocate(4), out_at = gpu.allocate(4 * 64 * groups);
  for (const unsigned threads : {1u, 2u}) {
    *gpu.host<int>(arrived_at) = 0;
    TestGpu::Launch launch{{64 * groups, 1, 1}, {64, 1, 1}, {}};
    launch.threads = threads;
    expect_done("grid_barrier", launch.add(arrived_at).add(out_at));
    for (const int value : gpu.download<int>(out_at, 64 * groups)) ASSERT_EQ(value, groups);
  }
}

TEST_P(CompiledKernels, global_wave_sync_outlives_a_dispatch) {
  const int groups = 20, rounds = 5;
  const auto values_at = gpu.allocate(4 * groups), wrong_at = gpu.allocate(4);
  expect_done("sync_init", TestGpu::Launch{{64, 1, 1}, {64, 1, 1}, {}}.add(groups));
  for (const unsigned threads : {1u, 2u}) {
    TestGpu::Launch launch{{64 * groups, 1, 1}, {64, 1, 1}, {}};
    launch.threads = threads;
    expect_done("sync_exchange", launch.add(values_at).add(wrong_at).add(rounds));
    EXPECT_EQ(*gpu.host<int>(wrong_at), 0);
  }
}

TEST_P(CompiledKernels, counters_are_those_of_the_kernel) {
  const int n = 1024;
  std::vector<float> a(n, 1.0f), b(n, 2.0f);
  const auto a_at = gpu.upload(a), b_at = gpu.upload(b), c_at = gpu.allocate(4 * n);
  expect_done("vector_add", TestGpu::Launch{{1024, 1, 1}, {256, 1, 1}, {}}.add(a_at).add(b_at).add(c_at).add(n));
  const DispatchCounters& counters = gpu.counters();
  EXPECT_EQ(counters.workgroups, 4u);
  const bool wave64 = std::string(GetParam().processor).starts_with("gfx9");
  EXPECT_EQ(counters.waves, wave64 ? 16u : 32u);
  EXPECT_EQ(counters.wave_instructions,
            counters.valu + counters.salu + counters.vmem + counters.smem + counters.lds + counters.branches);
  EXPECT_EQ(counters.matrix, 0u);
  if (std::string(GetParam().level) == "O0") return;  // its stack is memory too
  const auto& global = counters.memory[static_cast<unsigned>(Traffic::global)];
  EXPECT_EQ(global.bytes_read, 8u * n);
  EXPECT_EQ(global.bytes_written, 4u * n);
  EXPECT_EQ(counters.vmem, 3 * counters.waves);
  EXPECT_EQ(counters.partial_valu, 0u);
  expect_done("vector_add", TestGpu::Launch{{64, 1, 1}, {64, 1, 1}, {}}.add(a_at).add(b_at).add(c_at).add(10));
  EXPECT_EQ(gpu.counters().memory[static_cast<unsigned>(Traffic::global)].bytes_read, 80u);
  EXPECT_GT(gpu.counters().partial_valu + (wave64 ? 0u : 1u), 0u);
}

TEST_P(CompiledKernels, store_outside_of_an_allocation_is_a_memory_fault) {
  const auto out_at = gpu.allocate(4096 * 2);
  const DispatchError error = gpu.run("bad_store", TestGpu::Launch{{64, 1, 1}, {64, 1, 1}, {}}.add(out_at));
  EXPECT_EQ(error.status, DispatchStatus::memory_fault);
  EXPECT_EQ(error.address, out_at + 8192);
  EXPECT_TRUE(error.write);
  EXPECT_FALSE(error.present);
  EXPECT_NE(error.message.find("store"), std::string::npos) << error.message;
}

TEST_P(CompiledKernels, bad_packets_are_refused_with_a_reason) {
  const auto refused = [&](TestGpu::Launch launch, const char* reason) {
    const DispatchError error = gpu.run("bad_store", std::move(launch));
    EXPECT_EQ(error.status, DispatchStatus::bad_packet);
    EXPECT_NE(error.message.find(reason), std::string::npos) << error.message;
  };
  refused(TestGpu::Launch{{0, 1, 1}, {64, 1, 1}, {}}, "is 0");
  refused(TestGpu::Launch{{4096, 1, 1}, {2048, 1, 1}, {}}, "2048 work-items");
  refused(TestGpu::Launch{{0xffffffffu, 0xffffffffu, 0xffffffffu}, {1, 1, 1}, {}}, "too many workgroups");
  TestGpu::Launch launch{{64, 1, 1}, {64, 1, 1}, {}};
  launch.group_bytes = 1 << 20;
  refused(launch, "LDS");
  launch.group_bytes = 0;
  launch.private_bytes = 1u << 31;
  refused(launch, "private memory");
}

INSTANTIATE_TEST_SUITE_P(all, CompiledKernels,
                         testing::Values(Build{"gfx90a", "O0"}, Build{"gfx90a", "O3"}, Build{"gfx1030", "O0"},
                                         Build{"gfx1030", "O3"}, Build{"gfx906", "O3"}, Build{"gfx942", "O0"},
                                         Build{"gfx942", "O3"}, Build{"gfx1100", "O0"}, Build{"gfx1100", "O3"}),
                         [](const auto& each) { return std::string(each.param.processor) + "_" + each.param.level; });

}  // namespace
}  // namespace kerncap::softgpu::isa
