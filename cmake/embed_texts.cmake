# cmake -DOUT=assets.cc -DHEADER=siamese/report/assets.h -DNAMESPACE=siamese::report
#       "-DTEXTS=style_text=a.css,b.css|script_text=a.js,b.js" -P embed_texts.cmake
# A function for each text, declared in HEADER, that returns its files, joined in the given order. Called by
# siamese_embed_texts (SiameseRoom.cmake).
set(functions "")
string(REPLACE "|" ";" TEXTS "${TEXTS}")
foreach(text IN LISTS TEXTS)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${text}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  set(all "")
  foreach(file IN LISTS files)
    file(READ ${file} content)
    string(FIND "${content}" ")asset\"" clash)
    if(NOT clash EQUAL -1)
      message(FATAL_ERROR "${file}: must not contain )asset\", the end mark of the literal")
    endif()
    string(APPEND all "${content}")
  endforeach()
  string(APPEND functions "std::string_view ${name}() { return R\"asset(${all})asset\"; }\n\n")
endforeach()
file(WRITE ${OUT} "// Made by cmake/embed_texts.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

${functions}}  // namespace ${NAMESPACE}
")
