# SS_SANITIZE=thread|address|undefined builds the runtime and its tests with that
# sanitizer. Use it with SS_BUILD_COMPILER=OFF: LLVM's libraries are not built so.
# Included after OpenMP was found.
set(SS_SANITIZE "" CACHE STRING "Sanitizer of the runtime: thread, address, undefined or nothing")
set_property(CACHE SS_SANITIZE PROPERTY STRINGS "" thread address undefined)
if(SS_SANITIZE)
  if(NOT SS_SANITIZE MATCHES "^(thread|address|undefined)$")
    message(FATAL_ERROR "SS_SANITIZE is '${SS_SANITIZE}', expected thread, address, undefined or nothing")
  endif()
  if(SS_BUILD_COMPILER)
    message(FATAL_ERROR "SS_SANITIZE needs -DSS_BUILD_COMPILER=OFF: the compiler half links LLVM's libraries, which have no sanitizer")
  endif()
  add_compile_options(-fsanitize=${SS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${SS_SANITIZE})
  add_compile_definitions(SS_SANITIZE_${SS_SANITIZE})
  # OpenMP's library is not instrumented, and its barriers would be taken for
  # races: loops run in sequence, and the threads that are ours are looked at.
  if(SS_SANITIZE STREQUAL thread)
    set_property(TARGET OpenMP::OpenMP_CXX PROPERTY INTERFACE_COMPILE_OPTIONS)
  endif()
endif()
