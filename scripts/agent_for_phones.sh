#!/bin/sh
# Build the agent for phones with an Android NDK (r26 or newer).
#
#   ANDROID_NDK=/path/to/ndk scripts/agent_for_phones.sh [ABI...]     arm64-v8a where none is named
set -eu
cd "$(dirname "$0")/.."
toolchain="${ANDROID_NDK:-}/build/cmake/android.toolchain.cmake"
if [ -z "${ANDROID_NDK:-}" ] || [ ! -f "$toolchain" ]; then
  echo "agent: ANDROID_NDK is '${ANDROID_NDK:-}', where there is no build/cmake/android.toolchain.cmake.
  Unpack an NDK (r26 or newer) and name its folder: make agent ANDROID_NDK=/path/to/android-ndk-r27c" >&2
  exit 1
fi
for abi in "${@:-arm64-v8a}"; do
  folder=device_agent/build/$abi
  cmake -S device_agent -B "$folder" -DANDROID_ABI="$abi" -DANDROID_PLATFORM=android-24 -DANDROID_STL=c++_static \
    -DCMAKE_TOOLCHAIN_FILE="$toolchain"
  cmake --build "$folder" -j2
  echo "agent: $folder/pocketfarm-agent"
done
