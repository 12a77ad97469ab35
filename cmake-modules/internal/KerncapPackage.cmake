# The distribution package: `cpack -G DEB` in a built tree (scripts/package does both).
set(CPACK_PACKAGE_NAME kerncap)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "Records how an application's GPU kernels are compiled, captures a chosen dispatch with all device
memory, and makes of both a small project that rebuilds, replays, validates and benchmarks the kernel alone.
With a software GPU, so that all of it works without hardware too.")
set(CPACK_PACKAGE_CONTACT "The Kerncap developers <kerncap@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# Libraries are found by dpkg-shlibdeps, private ones beside them.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib/kerncap")
# What an emitted project needs to build its kernel and its replayer (docs/emit.md).
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "cmake, ninja-build, g++, hipcc, libamdhip64-dev, libhsa-runtime-dev, libfmt-dev, nlohmann-json3-dev, libzstd-dev, libxxhash-dev, libssl-dev")
include(CPack)
