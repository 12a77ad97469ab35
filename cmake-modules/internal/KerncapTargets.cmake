# How every folder of Kerncap declares its targets: one place for warnings, sanitizers, standards and output folders.

# The build tree is laid out like an installed prefix, so that programs find their companions by the same relative
# path in both: bin/, lib/kerncap/, libexec/kerncap/, share/kerncap/.
# With FetchContent too: these variables reach only Kerncap's own folders.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/kerncap")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(KERNCAP_INSTALL_PRIVATE_LIBDIR "lib/kerncap")
set(KERNCAP_INSTALL_DATADIR "share/kerncap")
set(KERNCAP_INSTALL_LIBEXECDIR "libexec/kerncap")

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(kerncap_options INTERFACE)
target_compile_features(kerncap_options INTERFACE cxx_std_20)
target_compile_options(kerncap_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wcast-align -Wunused -Woverloaded-virtual -Wformat=2
  $<$<BOOL:${KERNCAP_WERROR}>:-Werror>
  # g++ 12 and later see uninitialised std::optional members and overlapping std::string copies where there are none (GCC bugs 80635,
  # 105562, 105651), from 13 on dangling references to what outlives them (109642), and from 14 on writes beyond vectors
  # that could be empty (110498).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,14>>:-Wno-array-bounds -Wno-stringop-overflow>)
target_include_directories(kerncap_options INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
if(KERNCAP_SANITIZE)
  target_compile_options(kerncap_options INTERFACE "-fsanitize=${KERNCAP_SANITIZE}" -fno-omit-frame-pointer)
  target_link_options(kerncap_options INTERFACE "-fsanitize=${KERNCAP_SANITIZE}")
endif()
if(KERNCAP_BUILD_FUZZERS)
  # The fuzzers steer by what the libraries do with an input, not only by what they do themselves.
  target_compile_options(kerncap_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(kerncap_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# kerncap_library(NAME SOURCES ... [LINK ...] [PRIVATE_LINK ...])
# A position-independent static library `kerncap_NAME` with the alias `Kerncap::NAME`.
function(kerncap_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(kerncap_${name} STATIC ${arg_SOURCES})
  add_library(Kerncap::${name} ALIAS kerncap_${name})
  set_target_properties(kerncap_${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(kerncap_${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:kerncap_options> ${arg_PRIVATE_LINK})
  target_include_directories(kerncap_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_compile_features(kerncap_${name} PUBLIC cxx_std_20)
endfunction()

# kerncap_test(NAME SOURCES ... [LINK ...] [LABELS ...])
# A GoogleTest program whose cases CTest knows one by one. Each folder keeps its tests beside its sources.
function(kerncap_test name)
  if(NOT KERNCAP_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE kerncap_options ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "unit;${arg_LABELS}")
endfunction()

function(kerncap_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt")
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

# LLVM 19 (Debian 12) or 21 (forky): whatever is there, newest first. Sets KERNCAP_LLVM_* and kerncap_llvm_library().
function(kerncap_find_llvm)
  find_package(LLVM CONFIG QUIET HINTS
    /usr/lib/llvm-21 /usr/lib/llvm-20 /usr/lib/llvm-19)
  if(NOT LLVM_FOUND OR LLVM_VERSION_MAJOR LESS 19)
    message(FATAL_ERROR "Kerncap needs LLVM 19 or newer with its development files (llvm-19-dev); "
      "pass -DLLVM_DIR=<prefix>/lib/cmake/llvm")
  endif()
  set(LLVM_DIR "${LLVM_DIR}" PARENT_SCOPE)
  set(LLVM_INCLUDE_DIRS "${LLVM_INCLUDE_DIRS}" PARENT_SCOPE)
  set(LLVM_VERSION_MAJOR "${LLVM_VERSION_MAJOR}" PARENT_SCOPE)
  set(LLVM_TOOLS_BINARY_DIR "${LLVM_TOOLS_BINARY_DIR}" PARENT_SCOPE)
endfunction()
