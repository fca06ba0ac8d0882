# Cross-compiles for 64-bit Arm with Debian's compiler (preset cross-arm64). The compiler brings its own C and C++
# libraries; the others stand in build/arm64-sysroot (tools/arm64_sysroot.sh). Tests run under qemu's user emulation.
get_filename_component(sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot ABSOLUTE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CXX_FLAGS_INIT "-isystem ${sysroot}/usr/include/aarch64-linux-gnu") # jpeglib.h includes jconfig.h from there
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${sysroot}/usr/lib/aarch64-linux-gnu") # of libraries linked by their plain names

set(CMAKE_FIND_ROOT_PATH ${sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The path: libraries of the sysroot look for one another, which the run path of a binary does not help.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E
                                  LD_LIBRARY_PATH=${sysroot}/usr/lib/aarch64-linux-gnu)
