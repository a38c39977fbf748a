# cmake -DLIBRARY=<libsinkstate.so> -DREADELF=<readelf> -P CheckLibrary.cmake
# The runtime library links no part of LLVM and exports the C API alone.
execute_process(COMMAND ${READELF} -dW ${LIBRARY}
  OUTPUT_VARIABLE dynamic RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "readelf failed on ${LIBRARY}")
endif()
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" needed "${dynamic}")
if(NOT needed)
  message(FATAL_ERROR "no NEEDED entries found in ${LIBRARY}")
endif()
foreach(entry ${needed})
  if(entry MATCHES "LLVM|MLIR|clang")
    message(FATAL_ERROR "${LIBRARY} needs ${entry}")
  endif()
endforeach()

execute_process(COMMAND ${READELF} -sW --dyn-syms ${LIBRARY}
  OUTPUT_VARIABLE symbols)
string(REGEX MATCHALL "(GLOBAL|WEAK|UNIQUE) +DEFAULT +[0-9]+ [^\n]*"
  defined "${symbols}")
set(count 0)
foreach(entry ${defined})
  string(REGEX REPLACE ".*DEFAULT +[0-9]+ ([^ @]+).*" "\\1" name "${entry}")
  if(NOT name MATCHES "^ss_")
    message(FATAL_ERROR "${LIBRARY} exports ${name}")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
if(count LESS 20)
  message(FATAL_ERROR "${LIBRARY} exports ${count} functions of the C API")
endif()
message(STATUS "${count} functions exported")
