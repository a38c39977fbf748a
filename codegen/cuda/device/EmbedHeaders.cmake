# cmake -DHEADERS="a.cuh;b.cuh" -DOUTPUT=file -P EmbedHeaders.cmake
# Writes an initializer list of {name, text}, sorted by name.
list(SORT HEADERS)
set(TEXT "")
foreach(HEADER IN LISTS HEADERS)
  get_filename_component(NAME ${HEADER} NAME)
  file(READ ${HEADER} CONTENT)
  string(APPEND TEXT "{\"ss/${NAME}\", R\"cuh(${CONTENT})cuh\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${TEXT}")
