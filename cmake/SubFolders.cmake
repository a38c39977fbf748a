# ss_add_subfolders(a b ...): add_subdirectory for those that exist, in order.
function(ss_add_subfolders)
  foreach(folder ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()
