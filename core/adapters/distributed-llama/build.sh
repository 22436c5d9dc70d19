#!/bin/sh
# One shared library of Distributed Llama's attention:  sh build.sh FOLDER SOURCE OUTPUT [plain]
# FOLDER is recipe.sh's, SOURCE src/nn/nn-cpu-ops.cpp or a changed copy of it, and OUTPUT the library. It is compiled
# for this machine, or with "plain" for the oldest of its kind. CXX is the compiler, c++ where it is not set.
set -eu
usage="usage: sh build.sh FOLDER SOURCE OUTPUT [plain]"
folder=$(cd "${1:?"$usage"}" && pwd)
source=$(cd "$(dirname "${2:?"$usage"}")" && pwd)/$(basename "$2")
output=${3:?"$usage"}
what=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
engine=$folder/distributed-llama
version=$(git -C "$engine" rev-parse --short=7 HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

set -- -O3 -fPIC
[ "$what" = plain ] || set -- "$@" -march=native -mtune=native
# -iquote: their folder has a pthread.h, which is not to be taken for the system's.
{
  "${CXX:-c++}" -std=c++11 "$@" -w -iquote "$engine/src/nn" -c "$source" -o "$work/nn-cpu-ops.o" &&
    "${CXX:-c++}" -std=c++20 "$@" "-DDISTRIBUTED_LLAMA_VERSION=\"$version\"" -I "$here/../../include" \
      -iquote "$engine/src/nn" -c "$here/attention.cc" -o "$work/attention.o" &&
    "${CXX:-c++}" -shared "$work/attention.o" "$work/nn-cpu-ops.o" "$folder/rest.o" -o "$output"
} 2>"$work/log" || {
  echo "build.sh: $source does not compile: $(grep -m 1 -i error "$work/log" || tail -n 1 "$work/log")" >&2
  exit 1
}
