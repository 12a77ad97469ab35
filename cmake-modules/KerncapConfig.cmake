# find_package(Kerncap [version] [COMPONENTS record capture replay softgpu snapshot]): the programs and the functions below.
# The same file serves an installed prefix and a build tree, because both are laid out alike.
#
# Imported targets: Kerncap::kerncap, Kerncap::kerncap-cc, Kerncap::kerncap-replay (those that are there).
# Kerncap::snapshot: the library that reads snapshots (<kerncap/snapshot.h>).
# Components may be written in any case. Functions: kerncap_record, kerncap_add_capture, kerncap_add_reproducer (KerncapFunctions.cmake documents them).
cmake_minimum_required(VERSION 3.25)

cmake_path(SET Kerncap_PREFIX NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
string(REGEX REPLACE "/$" "" Kerncap_PREFIX "${Kerncap_PREFIX}")

foreach(kerncap_program IN ITEMS kerncap kerncap-cc kerncap-replay)
  if(NOT TARGET Kerncap::${kerncap_program} AND EXISTS "${Kerncap_PREFIX}/bin/${kerncap_program}")
    add_executable(Kerncap::${kerncap_program} IMPORTED GLOBAL)
    set_target_properties(Kerncap::${kerncap_program} PROPERTIES
      IMPORTED_LOCATION "${Kerncap_PREFIX}/bin/${kerncap_program}")
  endif()
endforeach()
unset(kerncap_program)
if(NOT TARGET Kerncap::snapshot AND EXISTS "${Kerncap_PREFIX}/lib/libkerncap-snapshot.so")
  add_library(Kerncap::snapshot SHARED IMPORTED GLOBAL)
  set_target_properties(Kerncap::snapshot PROPERTIES
    IMPORTED_LOCATION "${Kerncap_PREFIX}/lib/libkerncap-snapshot.so"
    IMPORTED_SONAME libkerncap-snapshot.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${Kerncap_PREFIX}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()

# What each component needs, relative to the prefix.
set(kerncap_files_record bin/kerncap-cc bin/kerncap)
set(kerncap_files_capture bin/kerncap lib/kerncap/libkerncap-capture.so)
set(kerncap_files_replay bin/kerncap bin/kerncap-replay)
set(kerncap_files_softgpu bin/kerncap lib/kerncap/libkerncap-softgpu.so lib/kerncap/libkerncap-softgpu-isa.so)
set(kerncap_files_snapshot lib/libkerncap-snapshot.so include/kerncap/snapshot.h)
set(kerncap_components record capture replay softgpu snapshot)
foreach(kerncap_component IN LISTS kerncap_components)
  set(Kerncap_${kerncap_component}_FOUND TRUE)
  foreach(kerncap_file IN LISTS kerncap_files_${kerncap_component})
    if(NOT EXISTS "${Kerncap_PREFIX}/${kerncap_file}")
      set(Kerncap_${kerncap_component}_FOUND FALSE)
      list(APPEND kerncap_missing_${kerncap_component} "${Kerncap_PREFIX}/${kerncap_file}")
    endif()
  endforeach()
endforeach()

set(Kerncap_FOUND TRUE)
if(NOT Kerncap_FIND_COMPONENTS)
  set(Kerncap_FIND_COMPONENTS record)
  set(Kerncap_FIND_REQUIRED_record TRUE)
endif()
foreach(kerncap_component IN LISTS Kerncap_FIND_COMPONENTS)
  string(TOLOWER "${kerncap_component}" kerncap_name)
  set(Kerncap_${kerncap_component}_FOUND "${Kerncap_${kerncap_name}_FOUND}")
  if(Kerncap_FIND_REQUIRED_${kerncap_component} AND NOT Kerncap_${kerncap_name}_FOUND)
    set(Kerncap_FOUND FALSE)
    if(kerncap_name IN_LIST kerncap_components)
      list(JOIN kerncap_missing_${kerncap_name} ", " kerncap_missing)
      string(APPEND Kerncap_NOT_FOUND_MESSAGE "Component '${kerncap_component}' is incomplete: ${kerncap_missing} is missing; "
        "build or install Kerncap again. ")
    else()
      list(JOIN kerncap_components ", " kerncap_known)
      string(APPEND Kerncap_NOT_FOUND_MESSAGE "There is no component '${kerncap_component}'; there are: ${kerncap_known}. ")
    endif()
  endif()
endforeach()
unset(kerncap_component)

if(Kerncap_FOUND)
  set_property(GLOBAL PROPERTY KERNCAP_PREFIX "${Kerncap_PREFIX}")
  include("${CMAKE_CURRENT_LIST_DIR}/KerncapFunctions.cmake")
endif()
