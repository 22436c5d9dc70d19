#!/bin/sh
# ggml's CPU back end, and kernel libraries over it:  sh recipe.sh FOLDER [VERSION]
# VERSION is a release of llama-cpp-python, whose sources hold llama.cpp and its ggml. attention.cc says what each
# FOLDER/lib/ggml-*.so is; FOLDER/bin/probe is probe.cc. CMake, a compiler of C++20 and pip are needed: PYTHON is the
# interpreter that has pip, python3 where it is not set. JOBS files are compiled at once, 2 where it is not set.
# ggml is built for the instruction set of this machine. Options of its CMake in GGML_OPTIONS force another one:
# "-DGGML_NATIVE=OFF" AVX2 with FMA, "-DGGML_NATIVE=OFF -DGGML_AVX2=OFF -DGGML_FMA=OFF -DGGML_BMI2=OFF" AVX.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
version=${2:-0.3.36}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
source=$folder/llama_cpp_python-$version/vendor/llama.cpp/ggml
build=$folder/build-$version
log=$folder/install.log

fail() {
  echo "recipe.sh: $1: $( (grep -m 1 -i error "$log" || tail -n 1 "$log") | cut -c 1-160)" >&2
  exit 1
}

if [ ! -f "$source/complete" ]; then
  "${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --retries 1 --no-deps \
    --no-binary llama-cpp-python --dest "$folder" "llama-cpp-python==$version" >"$log" 2>&1 ||
    fail "pip has no sources of llama-cpp-python $version"
  tar -xzf "$folder/llama_cpp_python-$version.tar.gz" -C "$folder" \
    "llama_cpp_python-$version/vendor/llama.cpp/ggml" >"$log" 2>&1 || fail "these sources have no ggml"
  rm "$folder/llama_cpp_python-$version.tar.gz"
  touch "$source/complete"
fi

rm -f "$build/CMakeCache.txt" # options of an earlier call
# shellcheck disable=SC2086 # several options
cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release "-DGGML_SOURCE=$source" \
  "-DRELEASE=llama-cpp-python $version" ${GGML_OPTIONS:-} >"$log" 2>&1 || fail "CMake fails"
cmake --build "$build" --parallel "${JOBS:-2}" >"$log" 2>&1 || fail "ggml does not compile"
mkdir -p "$folder/lib" "$folder/bin"
cp "$build"/lib/ggml-*.so "$folder/lib"
cp "$build/bin/probe" "$folder/bin"
