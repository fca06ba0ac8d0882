# Packs a build as OUT/siamese-VERSION-SYSTEM.tar.gz: the binary, its libraries, the recipes. `make tarball`.
#   cmake -DBUILD=build/release -DROOT=<source tree> -DOUT=dist -P cmake/binary_tarball.cmake
# LibTorch is not in it: it comes from the `torch` wheel of the same version, which the user links to as `torch` beside
# bin/. So the rpath of everything is relative: lib/ for what we bring, torch/lib for what the wheel brings. The wheel's
# libgomp is part of that: a second OpenMP runtime in the process would be a second pool of threads.
cmake_minimum_required(VERSION 3.25)

function(cached name result)
  file(STRINGS ${BUILD}/CMakeCache.txt line REGEX "^${name}:" LIMIT_COUNT 1)
  if(NOT line)
    message(FATAL_ERROR "tarball: ${BUILD}/CMakeCache.txt: expected ${name}: is ${BUILD} a build of siamese?")
  endif()
  string(REGEX REPLACE "^[^=]*=" "" value "${line}")
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

get_filename_component(BUILD ${BUILD} ABSOLUTE)
get_filename_component(OUT ${OUT} ABSOLUTE)
cached(CMAKE_PROJECT_VERSION version)
cached(SIAMESE_TORCH_PREFIX torch)
file(STRINGS ${torch}/version.py torch_version REGEX "^__version__")
string(REGEX REPLACE "^[^']*'([0-9.]*).*$" "\\1" torch_version "${torch_version}")
execute_process(COMMAND uname -m OUTPUT_VARIABLE processor OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(name siamese-${version}-linux-${processor})
set(folder ${OUT}/${name})

file(REMOVE_RECURSE ${folder})
file(COPY ${BUILD}/siamese DESTINATION ${folder}/bin)
file(COPY ${BUILD}/rooms/ops/libsiamese_ops.so DESTINATION ${folder}/lib)
if(EXISTS ${BUILD}/libsiamese_mpi.so)
  file(COPY ${BUILD}/libsiamese_mpi.so DESTINATION ${folder}/lib) # the user's own Open MPI is behind it
endif()
file(COPY ${ROOT}/configs DESTINATION ${folder}/share/siamese)
file(COPY ${ROOT}/LICENSE ${ROOT}/CHANGELOG.md DESTINATION ${folder})
file(MAKE_DIRECTORY ${folder}/licenses) # of the libraries in lib/

# What the two need, but for torch's own, MPI, the C and C++ runtime, and what a system should keep up to date itself
# (OpenSSL, Brotli, zlib). The rpath of the binary does not hold for the libraries of its libraries: those are the system's.
file(
  GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${folder}/bin/siamese
  LIBRARIES ${folder}/lib/libsiamese_ops.so
  DIRECTORIES ${torch}/lib ${folder}/lib
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^lib(torch|c10|shm|gomp|mpi|siamese)"
                      "^(lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+|mvec|ssl|crypto|brotli[a-z]*|z)|ld-linux.*)\\.so")
if(missing)
  message(FATAL_ERROR "tarball: these libraries are needed and not here: ${missing}")
endif()
foreach(library IN LISTS found)
  file(REAL_PATH "${library}" real)
  get_filename_component(soname "${library}" NAME)
  file(COPY_FILE "${real}" "${folder}/lib/${soname}")
  # Their licences ask to go with them; Debian keeps each beside the package that brought the file.
  execute_process(COMMAND dpkg-query -S "${real}" OUTPUT_VARIABLE owner ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE unknown)
  string(REGEX REPLACE "[:,].*" "" package "${owner}")
  set(copyright "/usr/share/doc/${package}/copyright")
  if(unknown OR NOT EXISTS "${copyright}")
    message(WARNING "tarball: the licence of ${soname} was not found: add it to licenses/ before you pass the archive on")
  else()
    file(COPY_FILE "${copyright}" "${folder}/licenses/${package}.txt")
  endif()
endforeach()
file(RPATH_SET FILE ${folder}/bin/siamese NEW_RPATH "\$ORIGIN/../lib:\$ORIGIN/../torch/lib")
file(RPATH_SET FILE ${folder}/lib/libsiamese_ops.so NEW_RPATH "\$ORIGIN:\$ORIGIN/../torch/lib")

file(
  WRITE ${folder}/README.txt
  "siamese ${version} for Linux on ${processor}. It needs glibc and libstdc++ as new as those of Debian 12, OpenSSL 3,
Brotli and zlib of your system, and LibTorch from the Python package torch ${torch_version}, which is not in this archive. Once,
in this folder:

    pip install torch==${torch_version}
    ln -s \"$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')\" torch
    bin/siamese --version
    bin/siamese config list

The binary looks for libraries in lib/ and torch/lib/ beside its own folder (its rpath), nowhere else of its own accord.
Under mpirun it loads lib/libsiamese_mpi.so, which needs the Open MPI of your system.

LICENSE is siamese's own; licenses/ has those of the libraries in lib/.
")
execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf ${name}.tar.gz ${name} WORKING_DIRECTORY ${OUT}
                        COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${folder})
file(SIZE ${OUT}/${name}.tar.gz bytes)
message("tarball: ${OUT}/${name}.tar.gz, ${bytes} bytes; torch ${torch_version} is linked to it by its README.txt")
