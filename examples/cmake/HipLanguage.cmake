# Lets `project(... LANGUAGES CXX HIP)` work with a distribution's HIP as well as with AMD's own packages; include it
# BEFORE project(). Whatever the user chose (CMAKE_HIP_COMPILER, HIPCXX, CMAKE_HIP_FLAGS, ...) stays.
#
# CMake and clang expect three things where AMD's packages put them; Debian's are elsewhere:
#  - the clang behind hipcc; Debian's plain `clang++` may be another version. `hipcc --version` names the right one.
#  - the HIP runtime and the device libraries, which Debian 12's clang doesn't find by itself: `--rocm-path` and its
#    companions.
#  - `<ROCm root>/lib/cmake/hip-lang/`, on Debian lib/<multiarch>/cmake/hip-lang/. A small root in the build folder
#    forwards to it. It also says where amd_comgr is, since CMake doesn't search multiarch folders in compiler checks.

if(NOT CMAKE_HIP_COMPILER AND NOT DEFINED ENV{HIPCXX})
  find_program(HIPCC_PROGRAM hipcc PATHS /opt/rocm/bin DOC "HIP's compiler driver, asked which clang it uses")
  if(NOT HIPCC_PROGRAM)
    message(FATAL_ERROR "hipcc was not found: install the HIP compiler (Debian: apt-get install hipcc libamdhip64-dev)")
  endif()
  execute_process(COMMAND "${HIPCC_PROGRAM}" --version OUTPUT_VARIABLE hipcc_version ERROR_QUIET)
  string(REGEX MATCH "InstalledDir: ([^\n]+)" matched "${hipcc_version}")
  set(clang_folder "${CMAKE_MATCH_1}")
  string(REGEX MATCH "clang version ([0-9]+)" matched "${hipcc_version}")
  find_program(HIP_CLANG_PROGRAM NAMES "clang++-${CMAKE_MATCH_1}" clang++ HINTS "${clang_folder}"
    DOC "The clang++ that hipcc uses")
  set(CMAKE_HIP_COMPILER "${HIP_CLANG_PROGRAM}" CACHE FILEPATH "HIP compiler")
endif()

file(GLOB multiarch_hip_lang "/usr/lib/*-linux-gnu/cmake/hip-lang")
if(multiarch_hip_lang AND NOT EXISTS /opt/rocm/lib/cmake/hip-lang AND NOT CMAKE_HIP_COMPILER_ROCM_ROOT)
  list(GET multiarch_hip_lang 0 multiarch_hip_lang)
  cmake_path(GET multiarch_hip_lang PARENT_PATH multiarch_packages)

  cmake_path(SET device_libs NORMALIZE "${multiarch_packages}/../amdgcn/bitcode")
  if(NOT DEFINED CMAKE_HIP_FLAGS AND EXISTS "${device_libs}")
    set(hip_flags "--rocm-path=/usr --rocm-device-lib-path=${device_libs}")
    execute_process(COMMAND hipconfig --version OUTPUT_VARIABLE hip_version ERROR_QUIET)
    if(hip_version MATCHES "^[0-9]+[.][0-9]+[.][0-9]+")
      string(APPEND hip_flags " --hip-version=${CMAKE_MATCH_0}")
    endif()
    set(CMAKE_HIP_FLAGS "${hip_flags}" CACHE STRING "Flags used by the HIP compiler")
  endif()

  set(CMAKE_HIP_COMPILER_ROCM_ROOT "${CMAKE_BINARY_DIR}/rocm-root")
  file(CONFIGURE OUTPUT "${CMAKE_HIP_COMPILER_ROCM_ROOT}/lib/cmake/hip-lang/hip-lang-config.cmake" @ONLY CONTENT [[
if(NOT amd_comgr_DIR)
  set(amd_comgr_DIR "@multiarch_packages@/amd_comgr")
endif()
include("@multiarch_hip_lang@/hip-lang-config.cmake")
# The package adds -isystem /usr/include, which breaks #include_next <math.h>; clang looks there anyway.
set_target_properties(hip-lang::device hip-lang::amdhip64 PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "")
]])
endif()
