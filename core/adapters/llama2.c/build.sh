#!/bin/sh
# One shared library of llama2.c's attention:  sh build.sh FOLDER SOURCE OUTPUT [fast]
# FOLDER is recipe.sh's, SOURCE run.c or a changed copy of it, and OUTPUT the library. With "fast" it has the flags of
# the Makefile's runomp, on one thread, else those of its run. CC is the compiler, cc where it is not set.
set -eu
usage="usage: sh build.sh FOLDER SOURCE OUTPUT [fast]"
folder=$(cd "${1:?"$usage"}" && pwd)
source=$(cd "$(dirname "${2:?"$usage"}")" && pwd)/$(basename "$2")
output=${3:?"$usage"}
what=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
version=$(git -C "$folder/llama2.c" rev-parse --short=7 HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "build.sh: $1" >&2
  exit 1
}

# Attention is a part of forward(): the lines from this comment to the next one below it.
first='^        // multihead attention\. iterate over all heads$'
last='^        // final matmul to get the output of the attention$'
for anchor in "$first" "$last"; do
  [ "$(grep -c "$anchor" "$source")" = 1 ] || fail "$source has not one line like $anchor"
done
sed -n "\|$first|,\|$last|p" "$source" >"$work/attention_of_forward.h"

set -- -O3
[ "$what" != fast ] || set -- -Ofast -march=native -DLLAMA2C_FAST
"${CC:-cc}" "$@" -fPIC -w "-DLLAMA2C_VERSION=\"$version\"" "-DLLAMA2C_SOURCE=\"$source\"" -I "$here/../../include" \
  -I "$work" -c "$here/attention.c" -o "$work/attention.o" 2>"$work/log" ||
  fail "$source does not compile: $(grep -m 1 -i error "$work/log" || tail -n 1 "$work/log")"
# Without -Ofast, by which a library would set the mode of whatever process loads it.
"${CC:-cc}" -shared "$work/attention.o" -lm -o "$output" 2>"$work/log" ||
  fail "$output is not linked: $(tail -n 1 "$work/log")"
