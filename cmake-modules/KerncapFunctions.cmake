# The functions of the package. They work after find_package(Kerncap) and, with FetchContent or add_subdirectory, after
# Kerncap was added to the project: then its programs are built before the targets that need them.

include_guard(GLOBAL)

# kerncap_record([TARGETS <target>...] [DB <folder>] [LANGUAGES <language>...])
#
# Records how translation units are compiled: puts kerncap-cc in front of their compilers (also in front of another
# launcher, such as ccache). The objects stay the same, byte by byte.
#   TARGETS    only these; otherwise all targets that this directory and those below define AFTER the call
#   DB         the compilation database's folder (default: .kerncap in the top build folder)
#   LANGUAGES  of C, CXX, HIP, CUDA (default: all of them)
function(kerncap_record)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "DB" "TARGETS;LANGUAGES")
  kerncap_check_arguments(kerncap_record "${arg_UNPARSED_ARGUMENTS}" "${arg_KEYWORDS_MISSING_VALUES}")
  if(NOT arg_LANGUAGES)
    set(arg_LANGUAGES C CXX HIP CUDA)
  endif()

  # kerncap-cc finds a folder .kerncap upward from where the compiler runs; any other has to be named.
  set(usual_database "${CMAKE_BINARY_DIR}/.kerncap")
  if(NOT arg_DB)
    set(arg_DB "${usual_database}")
  endif()
  cmake_path(ABSOLUTE_PATH arg_DB BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
  kerncap_make_database_folder("${arg_DB}")
  set_property(GLOBAL PROPERTY KERNCAP_DATABASE "${arg_DB}")
  kerncap_program_path(kerncap-cc wrapper)
  if(arg_DB STREQUAL usual_database)
    set(launcher "${wrapper}")
  else()
    find_program(KERNCAP_ENV_PROGRAM env REQUIRED)
    mark_as_advanced(KERNCAP_ENV_PROGRAM)
    set(launcher "${KERNCAP_ENV_PROGRAM}" "KERNCAP_DB=${arg_DB}" "${wrapper}")
  endif()
  kerncap_request_file_api()

  if(arg_TARGETS)
    foreach(target IN LISTS arg_TARGETS)
      if(NOT TARGET "${target}")
        message(FATAL_ERROR "kerncap_record: '${target}' is not a target of this project")
      endif()
      foreach(language IN LISTS arg_LANGUAGES)
        get_target_property(present "${target}" ${language}_COMPILER_LAUNCHER)
        if(NOT present)
          set_target_properties("${target}" PROPERTIES ${language}_COMPILER_LAUNCHER "${launcher}")
        elseif(NOT wrapper IN_LIST present)
          set_target_properties("${target}" PROPERTIES ${language}_COMPILER_LAUNCHER "${launcher};${present}")
        endif()
      endforeach()
      kerncap_build_first("${target}" kerncap-cc)
    endforeach()
    return()
  endif()

  foreach(language IN LISTS arg_LANGUAGES)
    if(NOT wrapper IN_LIST CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher} ${CMAKE_${language}_COMPILER_LAUNCHER} PARENT_SCOPE)
    endif()
  endforeach()
  if(TARGET kerncap-cc)
    cmake_language(DEFER CALL kerncap_build_first_below "${CMAKE_CURRENT_SOURCE_DIR}" kerncap-cc)
  endif()
endfunction()

# kerncap_add_capture(NAME <target> TARGET <executable> KERNEL <pattern>
#                     [DISPATCH <n>] [ARGS <argument>...] [SOFTGPU [<architectures>]] [WORKING_DIRECTORY <folder>])
#
# A target that runs the executable and takes a snapshot of the kernel: <NAME>.kcap in the current build folder. It runs
# again when the executable changed. KERNEL and DISPATCH are those of `kerncap capture`; SOFTGPU runs it on the software GPU.
function(kerncap_add_capture)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET;KERNEL;DISPATCH;WORKING_DIRECTORY" "ARGS;SOFTGPU")
  if("SOFTGPU" IN_LIST arg_KEYWORDS_MISSING_VALUES)
    list(REMOVE_ITEM arg_KEYWORDS_MISSING_VALUES SOFTGPU)
    set(softgpu "--softgpu")
  elseif(arg_SOFTGPU)
    list(JOIN arg_SOFTGPU "," architectures)
    set(softgpu "--softgpu=${architectures}")
  endif()
  list(REMOVE_ITEM arg_KEYWORDS_MISSING_VALUES ARGS)
  kerncap_check_arguments(kerncap_add_capture "${arg_UNPARSED_ARGUMENTS}" "${arg_KEYWORDS_MISSING_VALUES}")
  foreach(required IN ITEMS NAME TARGET KERNEL)
    if(NOT arg_${required})
      message(FATAL_ERROR "kerncap_add_capture: ${required} is missing")
    endif()
  endforeach()
  if(NOT TARGET "${arg_TARGET}")
    message(FATAL_ERROR "kerncap_add_capture: '${arg_TARGET}' is not a target of this project")
  endif()
  if(NOT arg_WORKING_DIRECTORY)
    set(arg_WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set(dispatch "")
  if(DEFINED arg_DISPATCH)
    set(dispatch --dispatch "${arg_DISPATCH}")
  endif()

  kerncap_program_path(kerncap kerncap)
  set(snapshot "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.kcap")
  add_custom_command(OUTPUT "${snapshot}/manifest.json"
    COMMAND "${kerncap}" capture -k "${arg_KERNEL}" ${dispatch} ${softgpu} --force -o "${snapshot}" --
      "$<TARGET_FILE:${arg_TARGET}>" ${arg_ARGS}
    DEPENDS "${arg_TARGET}" WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}"
    COMMENT "Capturing ${arg_KERNEL} from ${arg_TARGET}" USES_TERMINAL VERBATIM)
  add_custom_target("${arg_NAME}" DEPENDS "${snapshot}/manifest.json")
  set_target_properties("${arg_NAME}" PROPERTIES KERNCAP_SNAPSHOT "${snapshot}")
  foreach(program IN ITEMS kerncap kerncap-capture kerncap-capture-codeobject kerncap_softgpu_preload
      kerncap_softgpu_isa_module)
    kerncap_build_first("${arg_NAME}" ${program})
  endforeach()
endfunction()

# kerncap_add_reproducer(NAME <target> SNAPSHOT <capture target or folder> [DB <folder>] [OUTPUT <folder>])
#
# A target that emits the stand-alone project of a snapshot: <NAME> in the current build folder, or OUTPUT. An existing
# project is replaced when the snapshot is newer: edit a copy, or choose an OUTPUT of your own and build the target once.
function(kerncap_add_reproducer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SNAPSHOT;DB;OUTPUT" "")
  kerncap_check_arguments(kerncap_add_reproducer "${arg_UNPARSED_ARGUMENTS}" "${arg_KEYWORDS_MISSING_VALUES}")
  foreach(required IN ITEMS NAME SNAPSHOT)
    if(NOT arg_${required})
      message(FATAL_ERROR "kerncap_add_reproducer: ${required} is missing")
    endif()
  endforeach()
  if(NOT arg_DB)
    get_property(arg_DB GLOBAL PROPERTY KERNCAP_DATABASE)
  endif()
  set(database "")
  if(arg_DB)
    cmake_path(ABSOLUTE_PATH arg_DB BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
    set(database --db "${arg_DB}")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT "${arg_NAME}")
  endif()
  cmake_path(ABSOLUTE_PATH arg_OUTPUT BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)

  set(capture "")
  if(TARGET "${arg_SNAPSHOT}")
    set(capture "${arg_SNAPSHOT}")
    get_target_property(arg_SNAPSHOT "${capture}" KERNCAP_SNAPSHOT)
    if(NOT arg_SNAPSHOT)
      message(FATAL_ERROR "kerncap_add_reproducer: target '${capture}' was not made by kerncap_add_capture")
    endif()
  endif()
  cmake_path(ABSOLUTE_PATH arg_SNAPSHOT BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)

  kerncap_program_path(kerncap kerncap)
  add_custom_command(OUTPUT "${arg_OUTPUT}/CMakeLists.txt"
    COMMAND "${kerncap}" emit "${arg_SNAPSHOT}" ${database} --force -o "${arg_OUTPUT}"
    DEPENDS "${arg_SNAPSHOT}/manifest.json" ${capture}
    COMMENT "Emitting ${arg_OUTPUT}" USES_TERMINAL VERBATIM)
  add_custom_target("${arg_NAME}" DEPENDS "${arg_OUTPUT}/CMakeLists.txt")
  set_target_properties("${arg_NAME}" PROPERTIES KERNCAP_PROJECT "${arg_OUTPUT}")
  foreach(program IN ITEMS kerncap kerncap-find-kernel kerncap-replay kerncap_templates)
    kerncap_build_first("${arg_NAME}" ${program})
  endforeach()
endfunction()

# ---- What the functions above share; not for projects. ----

function(kerncap_check_arguments caller unparsed missing)
  if(unparsed)
    message(FATAL_ERROR "${caller}: unknown arguments: ${unparsed}")
  endif()
  if(missing)
    message(FATAL_ERROR "${caller}: arguments without a value: ${missing}")
  endif()
endfunction()

# The path that a program has, or will have once it is built.
function(kerncap_program_path name result)
  get_property(prefix GLOBAL PROPERTY KERNCAP_PREFIX)
  set(path "${prefix}/bin/${name}")
  if(NOT TARGET "${name}" AND NOT EXISTS "${path}")
    message(FATAL_ERROR "Kerncap: '${path}' is missing; build or install Kerncap again")
  endif()
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

# An empty database, which core/compdb/folder.h knows by its VERSION file. Private to its owner, as command lines may be.
function(kerncap_make_database_folder folder)
  if(NOT EXISTS "${folder}/VERSION")
    file(MAKE_DIRECTORY "${folder}")
    file(CHMOD "${folder}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    file(WRITE "${folder}/VERSION" "1 kerncap compilation database\n")
  endif()
endfunction()

# Asks CMake for its own description of targets and toolchains. Before CMake 3.27 it is written from the second configuration on.
function(kerncap_request_file_api)
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.27)
    cmake_language(EVAL CODE "cmake_file_api(QUERY API_VERSION 1 CODEMODEL 2 TOOLCHAINS 1)")
  else()
    set(query "${CMAKE_BINARY_DIR}/.cmake/api/v1/query/client-kerncap/query.json")
    if(NOT EXISTS "${query}")
      file(WRITE "${query}" "{\"requests\": [{\"kind\": \"codemodel\", \"version\": 2}, {\"kind\": \"toolchains\", \"version\": 1}]}\n")
    endif()
  endif()
endfunction()

# With FetchContent the programs are targets, which must exist before those that run them.
function(kerncap_build_first target program)
  if(TARGET "${program}")
    add_dependencies("${target}" "${program}")
  endif()
endfunction()

function(kerncap_build_first_below folder program)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type "${target}" TYPE)
    if(type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
      kerncap_build_first("${target}" "${program}")
    endif()
  endforeach()
  get_property(kerncap_source GLOBAL PROPERTY KERNCAP_SOURCE_DIR)
  get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS below)
    if(NOT subfolder STREQUAL kerncap_source)
      kerncap_build_first_below("${subfolder}" "${program}")
    endif()
  endforeach()
endfunction()
