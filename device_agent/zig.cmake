# The toolchain for phones where no NDK is at hand: Zig's clang, libc++ and musl, which the package ziglang brings. The
# agent is static. It opens no library of a phone, so that it has the CPU backend alone.
set(CMAKE_SYSTEM_NAME Linux)
# CMake's own questions are compiled and not linked: Zig would build musl and libc++ for each of their sets of flags.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ANDROID_ABI POCKETFARM_ZIG)
if(ANDROID_ABI STREQUAL "arm64-v8a")
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
  set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-musl)
else()
  set(CMAKE_SYSTEM_PROCESSOR arm)
  set(CMAKE_CXX_COMPILER_TARGET arm-linux-musleabihf)
  set(cpu -mcpu=cortex_a7)  # with NEON, like the NDK's
endif()
set(CMAKE_CXX_COMPILER "${POCKETFARM_ZIG}" c++ ${cpu})
set(CMAKE_CXX_FLAGS_INIT "-static -g0 -s -fno-sanitize=undefined")
