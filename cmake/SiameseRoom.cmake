# One folder = one static library `siamese_<room>`, known outside as `siamese::<room>`.
#   siamese_room(NAME SOURCES a.cc b.cc [DEPENDS room...] [LINK public targets] [PRIVATE_LINK targets] [TORCH] [SHARED]
#                [UNITS_APART])
# SHARED: a shared library, for what must be in a process once (registered operators). UNITS_APART: each source by itself, as Highway's must be,
# which include themselves once for each kind of SIMD.

# Designated initializers leave out what has a default, on purpose. -Wrestrict of g++ 12 warns about ordinary std::string concatenation (GCC bug 105651).
set(SIAMESE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-restrict
                     -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND SIAMESE_WARNINGS -Wno-unknown-warning-option)
endif()
if(SIAMESE_WERROR)
  list(APPEND SIAMESE_WARNINGS -Werror)
endif()

if(SIAMESE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# A target as one unit: headers dominate (LibTorch's, nlohmann's, gtest's), and one unit reads them once.
function(siamese_one_unit target)
  if(SIAMESE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# One precompiled ATen for all targets in builds without unity (preset dev): made once, reused.
function(siamese_torch_compile target)
  if(NOT SIAMESE_UNITY)
    target_precompile_headers(${target} REUSE_FROM siamese_torch_pch)
  endif()
endfunction()

function(siamese_room name)
  cmake_parse_arguments(ROOM "TORCH;SHARED;UNITS_APART" "" "SOURCES;DEPENDS;LINK;PRIVATE_LINK" ${ARGN})
  if(ROOM_TORCH AND NOT SIAMESE_TORCH)
    return()
  endif()
  set(target siamese_${name})
  set(kind STATIC)
  if(ROOM_SHARED)
    set(kind SHARED)
  endif()
  add_library(${target} ${kind} ${ROOM_SOURCES})
  add_library(siamese::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_options(${target} PRIVATE ${SIAMESE_WARNINGS})
  list(TRANSFORM ROOM_DEPENDS PREPEND siamese_)
  target_link_libraries(${target} PUBLIC ${ROOM_DEPENDS} ${ROOM_LINK} PRIVATE ${ROOM_PRIVATE_LINK})
  if(NOT ROOM_UNITS_APART)
    siamese_one_unit(${target})
  endif()
  if(ROOM_TORCH)
    target_link_libraries(${target} PUBLIC siamese_torch)
    siamese_torch_compile(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY SIAMESE_ROOMS ${target})
endfunction()

# A generated source with the contents of files, for the rooms that carry some: a function of each NAME, declared in
# HEADER, returns its files joined in order.
#   siamese_embed_texts(OUT assets.cc HEADER siamese/room/assets.h NAMESPACE siamese::room TEXTS name=a,b name=c)
function(siamese_embed_texts)
  cmake_parse_arguments(EMBED "" "OUT;HEADER;NAMESPACE" "TEXTS" ${ARGN})
  set(files "")
  foreach(text IN LISTS EMBED_TEXTS)
    string(REGEX REPLACE "^[a-z_]+=" "" of_text "${text}")
    string(REPLACE "," ";" of_text "${of_text}")
    list(APPEND files ${of_text})
  endforeach()
  list(JOIN EMBED_TEXTS "|" texts)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_texts.cmake)
  add_custom_command(
    OUTPUT ${EMBED_OUT}
    COMMAND ${CMAKE_COMMAND} -DOUT=${EMBED_OUT} -DHEADER=${EMBED_HEADER} -DNAMESPACE=${EMBED_NAMESPACE}
            "-DTEXTS=${texts}" -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding the texts of ${EMBED_HEADER}"
    VERBATIM)
endfunction()
