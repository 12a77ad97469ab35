// Measures wave instructions per second of processor time on the test kernels: softgpu_isa_speed [processor] [level]
// [threads].
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "softgpu/isa/test_gpu.h"

int main(int argc, char** argv) {
  using namespace kerncap::softgpu;
  using namespace kerncap::softgpu::isa;
  const std::string processor = argc > 1 ? argv[1] : "gfx90a", level = argc > 2 ? argv[2] : "O3";
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1;
  TestGpu gpu(processor);
  gpu.load(std::string(KERNCAP_ISA_KERNELS) + "/kernels_" + processor + "_" + level + ".hsaco");
  const auto measure = [&](const char* kernel, TestGpu::Launch launch) {
    launch.threads = threads;
    for (int round = 0; round < 2; ++round) {  // the first decodes
      const std::clock_t begin = std::clock();
      const DispatchError error = gpu.run(kernel, launch);
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      if (error.status != DispatchStatus::done) {
        std::printf("%-16s %s\n", kernel, error.message.c_str());
        return;
      }
      if (round == 1)
        std::printf("%-16s %9.3f ms, %7.2f million wave instructions, %7.1f million/s\n", kernel, seconds * 1e3,
                    static_cast<double>(gpu.counters().wave_instructions) * 1e-6,
                    static_cast<double>(gpu.counters().wave_instructions) * 1e-6 / seconds);
    }
  };
  const auto out = gpu.allocate(4 << 20);
  measure("fma_loop", TestGpu::Launch{{4096, 1, 1}, {256, 1, 1}, {}}.add(out).add(2000));
  measure("integer_loop", TestGpu::Launch{{4096, 1, 1}, {256, 1, 1}, {}}.add(out).add(2000));
  const int n = 1 << 20;
  const auto a = gpu.allocate(4 * n), b = gpu.allocate(4 * n), c = gpu.allocate(4 * n);
  measure("vector_add", TestGpu::Launch{{n, 1, 1}, {256, 1, 1}, {}}.add(a).add(b).add(c).add(n));
  measure("block_sum", TestGpu::Launch{{n, 1, 1}, {256, 1, 1}, {}}.add(a).add(out).add(n));
  measure("matrix_product", TestGpu::Launch{{256, 256, 1}, {16, 16, 1}, {}}.add(a).add(b).add(c).add(256));
  measure("histogram", TestGpu::Launch{{65536, 1, 1}, {256, 1, 1}, {}}.add(a).add(out).add(n));
  measure("float_math", TestGpu::Launch{{65536, 1, 1}, {256, 1, 1}, {}}.add(a).add(out).add(65536));
}
