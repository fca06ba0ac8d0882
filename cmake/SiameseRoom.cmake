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
  # What the sanitizers insert confuses GCC's flow analysis: it finds std::regex of its own library uninitialised.
  add_compile_options(-Wno-maybe-uninitialized)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# A target as one unit: headers dominate (LibTorch's, nlohmann's, gtest's), and one unit reads them once. CMake's own
# UNITY_BUILD names the sources by absolute paths, so that a compiler cache would not know the same unit in another clone;
# this one names them from the root of the tree. Generated sources, and those with options of their own, stay apart.
function(siamese_one_unit target)
  if(NOT SIAMESE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/${target}_unit.cc)
  set(text "")
  foreach(source IN LISTS sources)
    get_source_file_property(apart ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(NOT IS_ABSOLUTE ${source} AND NOT apart)
      string(APPEND text "#include \"${folder}/${source}\"\n")
      set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY) # written only when it changes
  target_sources(${target} PRIVATE ${unit})
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
