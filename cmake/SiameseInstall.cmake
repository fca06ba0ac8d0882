# `cmake --install build/release --prefix P`: the binary, one library per room (ops: shared, the only one with registered
# operators; Python takes it by torch.ops.load_library), headers, recipes, and a CMake package:
#   find_package(siamese REQUIRED)
#   target_link_libraries(my_model PRIVATE siamese::models)     # one room and what lies below it
#   target_link_libraries(my_tool PRIVATE siamese::siamese)     # every room but cli
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/siamese)
set(configs_dir ${CMAKE_INSTALL_DATADIR}/siamese/configs)

get_property(rooms GLOBAL PROPERTY SIAMESE_ROOMS)
foreach(room IN LISTS rooms)
  target_compile_features(${room} INTERFACE cxx_std_20)
endforeach()

set(library_rooms ${rooms})
list(REMOVE_ITEM library_rooms siamese_cli)
add_library(siamese_umbrella INTERFACE)
set_target_properties(siamese_umbrella PROPERTIES EXPORT_NAME siamese)
target_link_libraries(siamese_umbrella INTERFACE ${library_rooms})

# LibTorch stays where pip put it; our own shared library is found from where the binary is.
set(torch_rpath ${SIAMESE_TORCH_PREFIX}/lib)
if(TARGET siamese_ops)
  set_target_properties(siamese_ops PROPERTIES INSTALL_RPATH ${torch_rpath})
endif()

# siamese_torch is imported, so it is in no export set: the package makes it again by the same SiameseTorch.cmake.
install(TARGETS ${rooms} siamese_umbrella EXPORT siamese_targets)
install(
  EXPORT siamese_targets
  NAMESPACE siamese::
  FILE siameseTargets.cmake
  DESTINATION ${package_dir})

install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/siamese
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN assets EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/ DESTINATION ${configs_dir})

if(TARGET siamese)
  set_target_properties(siamese PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${torch_rpath}")
  install(TARGETS siamese)
endif()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/siameseConfig.cmake.in ${PROJECT_BINARY_DIR}/siameseConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS configs_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/siameseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/siameseConfig.cmake ${PROJECT_BINARY_DIR}/siameseConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/SiameseTorch.cmake DESTINATION ${package_dir})
