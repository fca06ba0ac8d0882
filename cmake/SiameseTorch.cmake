# One imported target, siamese_torch, from the installed `torch` wheel: include folders and the CPU libraries.
# The wheel's own TorchConfig.cmake is not used: it asks for the CUDA toolkit whenever the wheel was built with CUDA,
# also on machines that have none. This file is installed too: a project outside takes the same target from it.

if(TARGET siamese_torch)
  return()
endif()

if(NOT "$ENV{SIAMESE_TORCH_PREFIX}" STREQUAL "") # setup.sh reads it, too; it goes before what an earlier run cached
  set(SIAMESE_TORCH_PREFIX "$ENV{SIAMESE_TORCH_PREFIX}" CACHE PATH "Folder of the torch package" FORCE)
endif()
if(NOT SIAMESE_TORCH_PREFIX)
  # .venv is what setup.sh makes; otherwise the python on PATH may have torch. A wheel is built by the Python it is for.
  set(_candidates ${CMAKE_SOURCE_DIR}/.venv/bin/python ${SIAMESE_PYTHON} python3)
  if(SKBUILD)
    set(_candidates ${Python_EXECUTABLE})
  endif()
  foreach(_python IN LISTS _candidates)
    execute_process(
      COMMAND ${_python} -c "import os, torch; print(os.path.dirname(torch.__file__))"
      OUTPUT_VARIABLE _prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
    if(NOT _failed)
      set(SIAMESE_TORCH_PREFIX ${_prefix} CACHE PATH "Folder of the torch package (holds include/ and lib/)")
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${SIAMESE_TORCH_PREFIX}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch not found: run ./setup.sh, or pass -DSIAMESE_TORCH_PREFIX=<folder of the torch package>")
endif()

# The wheel brings headers of its own fmt, which come first: rooms with LibTorch use fmt header-only.
add_library(siamese_torch INTERFACE IMPORTED)
set(_lib ${SIAMESE_TORCH_PREFIX}/lib)
set(_libraries ${_lib}/libtorch.so ${_lib}/libtorch_cpu.so ${_lib}/libc10.so)
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND EXISTS ${_lib}/libtorch_cuda.so)
  list(APPEND _libraries ${_lib}/libtorch_cuda.so ${_lib}/libc10_cuda.so)
endif()
# The wheel's libraries were compiled with NDEBUG, and without it some of their classes (at::RecordFunction) have a member more.
# at::parallel_for is inlined from a header: without -fopenmp in our own units it silently runs serially.
# The runtime is the wheel's libgomp (same soname as the system's, found first by the rpath), so there is only one.
set_target_properties(
  siamese_torch
  PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
             "${SIAMESE_TORCH_PREFIX}/include;${SIAMESE_TORCH_PREFIX}/include/torch/csrc/api/include"
             INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
             "${SIAMESE_TORCH_PREFIX}/include;${SIAMESE_TORCH_PREFIX}/include/torch/csrc/api/include"
             INTERFACE_LINK_LIBRARIES "${_libraries}"
             INTERFACE_COMPILE_OPTIONS "-fopenmp"
             INTERFACE_COMPILE_DEFINITIONS "$<$<NOT:$<CONFIG:Release>>:NDEBUG>"
             INTERFACE_LINK_OPTIONS "-fopenmp;-Wl,-rpath,${_lib};-Wl,--no-as-needed")
