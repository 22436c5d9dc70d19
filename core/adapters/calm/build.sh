#!/bin/sh
# One shared library of calm's attention:  sh build.sh FOLDER SOURCE OUTPUT
# FOLDER is recipe.sh's, SOURCE src/infer.c or a changed copy of it, and OUTPUT the library. CC is the compiler, cc
# where it is not set.
set -eu
usage="usage: sh build.sh FOLDER SOURCE OUTPUT"
folder=$(cd "${1:?"$usage"}" && pwd)
source=$(cd "$(dirname "${2:?"$usage"}")" && pwd)/$(basename "$2")
output=${3:?"$usage"}
here=$(cd "$(dirname "$0")" && pwd)
version=$(git -C "$folder/calm" rev-parse --short=7 HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The Makefile's flags of arithmetic, without OpenMP, which splits the work by heads alone.
case $(uname -m) in
  x86_64) flags="-mf16c -mavx2 -mfma" ;;
  *) flags= ;;
esac
# shellcheck disable=SC2086 # several flags
"${CC:-cc}" -O3 -ffast-math $flags -fPIC -w "-DCALM_VERSION=\"$version\"" "-DCALM_SOURCE=\"$source\"" \
  -I "$here/../../include" -I "$folder/calm/src" -c "$here/attention.c" -o "$work/attention.o" 2>"$work/log" || {
  echo "build.sh: $source does not compile: $(grep -m 1 -i error "$work/log" || tail -n 1 "$work/log")" >&2
  exit 1
}
# Without -ffast-math, as calm is linked: subnormal numbers stay.
"${CC:-cc}" -shared "$work/attention.o" -lm -o "$output" 2>"$work/log" || {
  echo "build.sh: $output is not linked: $(tail -n 1 "$work/log")" >&2
  exit 1
}
