# cmake -DFILE=<code object> -DDIGEST=<SHA-256> -P SameCode.cmake
file(SHA256 "${FILE}" digest)
if(digest STREQUAL DIGEST)
  message(STATUS "The kernel's code is byte for byte the captured one")
else()
  message(FATAL_ERROR "The kernel's code differs from the captured one: an edit, another compiler, or another ROCm")
endif()
