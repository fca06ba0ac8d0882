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

# What the two need, but for torch's own, MPI, and the C and C++ runtime.
file(
  GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${folder}/bin/siamese
  LIBRARIES ${folder}/lib/libsiamese_ops.so
  DIRECTORIES ${torch}/lib ${folder}/lib
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^lib(torch|c10|shm|gomp|mpi|siamese)"
                      "^(lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+|mvec)|ld-linux.*)\\.so")
if(missing)
  message(FATAL_ERROR "tarball: these libraries are needed and not here: ${missing}")
endif()
foreach(library IN LISTS found)
  file(REAL_PATH "${library}" real)
  get_filename_component(soname "${library}" NAME)
  file(COPY_FILE "${real}" "${folder}/lib/${soname}")
endforeach()
file(RPATH_SET FILE ${folder}/bin/siamese NEW_RPATH "\$ORIGIN/../lib:\$ORIGIN/../torch/lib")
file(RPATH_SET FILE ${folder}/lib/libsiamese_ops.so NEW_RPATH "\$ORIGIN:\$ORIGIN/../torch/lib")

file(
  WRITE ${folder}/README.txt
  "siamese ${version} for Linux on ${processor}. It needs glibc and libstdc++ as new as those of Debian 12, and LibTorch
from the Python package torch ${torch_version}, which is not in this archive. Once, in this folder:

    pip install torch==${torch_version}
    ln -s \"$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')\" torch
    bin/siamese --version
    bin/siamese config list

The binary looks for libraries in lib/ and torch/lib/ beside its own folder (its rpath), nowhere else of its own accord.
Under mpirun it loads lib/libsiamese_mpi.so, which needs the Open MPI of your system.
")
execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf ${name}.tar.gz ${name} WORKING_DIRECTORY ${OUT}
                        COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${folder})
file(SIZE ${OUT}/${name}.tar.gz bytes)
message("tarball: ${OUT}/${name}.tar.gz, ${bytes} bytes; torch ${torch_version} is linked to it by its README.txt")
