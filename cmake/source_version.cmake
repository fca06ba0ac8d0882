# Writes OUT, the definitions of siamese/runs/source.h, when they are others than before.
#   cmake -DOUT=source.cc -DROOT=<source tree> -DVERSION=0.2.0 -DGIT=<git or empty> -P source_version.cmake
# The commit is the last that touched what a build is made of: a change of the docs is no other build. Without git it is
# the one that `git archive` wrote into cmake/archive_commit.txt, or none.
set(parts siamese cmake CMakeLists.txt CMakePresets.json)
set(commit "")
set(dirty "")

function(run_git result)
  execute_process(COMMAND ${GIT} -C ${ROOT} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE failed ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(text "")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

if(GIT AND EXISTS ${ROOT}/.git) # not the repository of somebody who has these sources in a folder of theirs
  run_git(commit log -1 --format=%H -- ${parts})
  run_git(changes status --porcelain --untracked-files=all -- ${parts})
  if(changes)
    run_git(difference diff HEAD -- ${parts})
    run_git(added ls-files --others --exclude-standard -- ${parts})
    string(REPLACE "\n" ";" added "${added}")
    foreach(file IN LISTS added)
      file(SHA1 ${ROOT}/${file} hash)
      string(APPEND difference "${file} ${hash}\n")
    endforeach()
    string(SHA1 dirty "${difference}")
    string(SUBSTRING ${dirty} 0 8 dirty)
  endif()
else()
  file(READ ${ROOT}/cmake/archive_commit.txt commit)
  string(STRIP "${commit}" commit)
  if(NOT commit MATCHES "^[0-9a-f]+$")
    set(commit "")
  endif()
endif()

set(text
    "// Written by cmake/source_version.cmake.\n#include \"siamese/runs/source.h\"\n\nnamespace siamese::runs {\n\nconst char* const kSourceVersion = \"${VERSION}\";\nconst char* const kSourceCommit = \"${commit}\";\nconst char* const kSourceDirty = \"${dirty}\";\n\n}  // namespace siamese::runs\n"
)
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
