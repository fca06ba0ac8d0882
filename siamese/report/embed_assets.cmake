# cmake -DOUT=assets.cc -DSTYLES=a.css,b.css -DSCRIPTS=a.js,b.js -P embed_assets.cmake
# The files, joined in the given order, as two string literals.
function(joined result)
  set(all "")
  foreach(file IN LISTS ARGN)
    file(READ ${file} text)
    string(FIND "${text}" ")asset\"" clash)
    if(NOT clash EQUAL -1)
      message(FATAL_ERROR "${file}: must not contain )asset\", the end mark of the literal")
    endif()
    string(APPEND all "${text}")
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" STYLES "${STYLES}")
string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
joined(style ${STYLES})
joined(script ${SCRIPTS})
file(WRITE ${OUT} "// Made by embed_assets.cmake from siamese/report/assets.
#include \"siamese/report/assets.h\"

namespace siamese::report {

std::string_view style_text() { return R\"asset(${style})asset\"; }

std::string_view script_text() { return R\"asset(${script})asset\"; }

}  // namespace siamese::report
")
