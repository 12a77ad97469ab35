# What an emitted project compiles to replay its kernel, relative to the root of Kerncap's sources. It needs the ROCm
# runtime's headers, fmt, nlohmann-json, zstd, xxHash and OpenSSL's libcrypto, and tomlplusplus' header for kerncap.toml.
include("${CMAKE_CURRENT_LIST_DIR}/../core/snapshot/standalone_sources.cmake")

# Without the runtime: linked into the command line and the tests too.
set(KERNCAP_REPLAY_JUDGE_SOURCES
  replay/arguments.cpp
  replay/bench.cpp
  replay/channel.cpp
  replay/code_image.cpp
  replay/compare.cpp
  replay/element_type.cpp
  replay/gpu_clock.cpp
  replay/host_calls.cpp
  replay/judge.cpp
  replay/kernarg.cpp
  replay/options.cpp
  replay/parallel.cpp
  replay/patches.cpp
  replay/perturbation.cpp
  replay/plan.cpp
  replay/program_match.cpp
  replay/project.cpp
  replay/statistics.cpp
  replay/verdict.cpp
  replay/worker_pool.cpp
  replay/worker_process.cpp)

# Sessions: watch and serve.
set(KERNCAP_REPLAY_SESSION_SOURCES
  replay/interruption.cpp
  replay/line_reader.cpp
  replay/rebuild.cpp
  replay/server.cpp
  replay/source_watch.cpp
  replay/watch.cpp)

# Only in the program: the runtime, and the exported mmap().
set(KERNCAP_REPLAY_WORKER_SOURCES
  replay/device.cpp
  replay/hsa_api.cpp
  replay/main.cpp
  replay/memory.cpp
  replay/program.cpp
  replay/expected.cpp
  replay/software_gpu.cpp
  replay/state.cpp
  replay/state_compare.cpp
  replay/steering.cpp
  replay/worker.cpp)

set(KERNCAP_REPLAY_HEADERS
  replay/arguments.h
  replay/bench.h
  replay/channel.h
  replay/code_image.h
  replay/compare.h
  replay/device.h
  replay/element_type.h
  replay/expected.h
  replay/gpu_clock.h
  replay/host_calls.h
  replay/hsa_api.h
  replay/interruption.h
  replay/judge.h
  replay/kernarg.h
  replay/line_reader.h
  replay/memory.h
  replay/options.h
  replay/parallel.h
  replay/patches.h
  replay/perturbation.h
  replay/plan.h
  replay/program.h
  replay/project.h
  replay/rebuild.h
  replay/server.h
  replay/software_gpu.h
  replay/source_watch.h
  replay/state.h
  replay/statistics.h
  replay/steering.h
  replay/verdict.h
  replay/watch.h
  replay/wiped_buffer.h
  replay/worker.h
  replay/worker_pool.h
  replay/worker_process.h)

# Everything to copy. The project's CMake file is replay/standalone/CMakeLists.txt, to be put at the root of the copy.
set(KERNCAP_REPLAY_STANDALONE_SOURCES
  ${KERNCAP_SNAPSHOT_STANDALONE_SOURCES}
  ${KERNCAP_SNAPSHOT_STANDALONE_HEADERS}
  ${KERNCAP_REPLAY_JUDGE_SOURCES}
  ${KERNCAP_REPLAY_SESSION_SOURCES}
  ${KERNCAP_REPLAY_WORKER_SOURCES}
  ${KERNCAP_REPLAY_HEADERS}
  core/support/process.cpp
  core/support/process.h
  core/snapshot/standalone_sources.cmake
  replay/standalone/CMakeLists.txt
  replay/standalone_sources.cmake)
