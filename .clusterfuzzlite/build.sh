#!/bin/bash
# shellcheck disable=SC2016  # $ORIGIN is the loader's
# Builds the fuzz targets as OSS-Fuzz and ClusterFuzzLite want them: CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, SRC,
# WORK and OUT are set by their image. Leaves in OUT each target with its dictionary and its corpus as NAME_seed_corpus.zip,
# and in OUT/lib the libraries that the image that runs them does not have.
set -eu  # here and not in the first line: whoever runs it as "bash build.sh" is to be stopped too
source=${ATTEST_SOURCE:-$SRC/attest}
build=$WORK/attest
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)

# The distribution's libraries are built on libstdc++; with libc++ beside it nothing of C++ in them could be called.
CXXFLAGS=${CXXFLAGS//-stdlib=libc++/}
# The flags are the image's: no build type, which would add its own. Old dtags: what a library needs is found there, too.
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE= "${launcher[@]}" \
  -DATTEST_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DATTEST_TESTS=OFF -DATTEST_BENCH=OFF \
  -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS="-Wl,--disable-new-dtags ${LDFLAGS:-}"
# Some alone: FUZZ_TARGETS="manifest_fuzzer frame_fuzzer"
mapfile -t targets <"$build/fuzz_targets.txt"
[ -z "${FUZZ_TARGETS:-}" ] || read -ra targets <<<"$FUZZ_TARGETS"
cmake --build "$build" --target "${targets[@]}" ${ATTEST_JOBS:+-j "$ATTEST_JOBS"}

mkdir -p "$OUT/lib"
for target in "${targets[@]}"; do
  cp "$build/bin/$target" "$OUT/"
  dictionary=$source/fuzz/dictionaries/$target.dict
  [ ! -f "$dictionary" ] || cp "$dictionary" "$OUT/"
  (cd "$source/fuzz/corpus/$target" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" ./*)
  # All but the C library, of which another version would not start.
  ldd "$OUT/$target" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libresolv)\.so/ { print $3 }' |
    xargs -r cp -Lt "$OUT/lib"
done
