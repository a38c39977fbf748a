# Finds LLVM and MLIR 22 and sets up the compiler half of the project.
# After it: ss_add_mlir_library(), ss_add_mlir_tool() and the tablegen functions.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/runtime/include)
# LLVM_DEFINITIONS is one string with spaces.
separate_arguments(SS_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${SS_LLVM_DEFINITIONS})
if(SS_LINK STREQUAL dylib)
  # Debian's MLIRConfig.cmake does not set it.
  set(MLIR_LINK_MLIR_DYLIB ON)
elseif(SS_LINK STREQUAL static)
  include(StaticLLVM)
else()
  message(FATAL_ERROR "SS_LINK is '${SS_LINK}', expected dylib or static")
endif()

# Front-end time dominates these files and their speed does not matter.
string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

# lld links the tools several times faster than the system linker.
# -fuse-ld=lld alone may find the lld of an older LLVM.
find_program(SS_LLD NAMES ld.lld-22 ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
if(SS_LLD)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_link_options(--ld-path=${SS_LLD})
  else()
    add_link_options(-B${LLVM_TOOLS_BINARY_DIR} -fuse-ld=lld)
  endif()
endif()

# ss_add_mlir_library(<name> SOURCES <files...> [DEPENDS <tablegen targets...>]
#                     [LINK <project libraries...>] [MLIR <MLIR libraries...>])
# MLIR names the archives of the static link; with the dylib they collapse to libMLIR.
# The first library makes the precompiled header that the others reuse.
function(ss_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK;MLIR" ${ARGN})
  add_mlir_library(${name} ${ARG_SOURCES} PARTIAL_SOURCES_INTENDED
    DEPENDS ${ARG_DEPENDS} EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL)
  if(ARG_LINK)
    target_link_libraries(${name} PUBLIC ${ARG_LINK})
  endif()
  mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR})
  ss_use_pch(${name})
endfunction()

# ss_add_mlir_tool(<name> SOURCES ... [DEPENDS ...] [LINK ...] [MLIR ...])
# An executable in build/bin that may use LLVM and MLIR. SS_VERSION is defined for it.
function(ss_add_mlir_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK;MLIR" ${ARGN})
  add_llvm_executable(${name} ${ARG_SOURCES} PARTIAL_SOURCES_INTENDED)
  llvm_update_compile_flags(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_LINK)
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
  endif()
  mlir_target_link_libraries(${name} PRIVATE ${ARG_MLIR})
  target_compile_definitions(${name} PRIVATE SS_VERSION="${PROJECT_VERSION}")
endfunction()

# One precompiled header for every library of the compiler half.
function(ss_use_pch name)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return() # With g++ it costs more than it saves.
  endif()
  get_property(owner GLOBAL PROPERTY SS_PCH_OWNER)
  if(owner)
    target_precompile_headers(${name} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)
    set_property(GLOBAL PROPERTY SS_PCH_OWNER ${name})
  endif()
  target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endfunction()
