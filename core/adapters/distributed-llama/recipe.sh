#!/bin/sh
# Distributed Llama's attention on a CPU, as shared libraries:  sh recipe.sh FOLDER [VERSION]
# VERSION is a commit of https://github.com/b4rtaz/distributed-llama. attention.cc says what each
# FOLDER/lib/distributed-llama*.so is, and build.sh makes one of them. CXX is the compiler, c++ where it is not set; git
# is needed, too.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
version=${2:-8d624a7b1f9acc0855d71a32519b22fe51e0bd86}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder/lib"
folder=$(cd "$folder" && pwd)
source=$folder/distributed-llama
log=$folder/install.log

fail() {
  echo "recipe.sh: $1: $(grep -m 1 -i 'error\|fatal' "$log" || tail -n 1 "$log")" >&2
  exit 1
}

[ -d "$source/.git" ] || git init --quiet "$source" >"$log" 2>&1 || fail "git makes no repository"
git -C "$source" cat-file -e "$version^{commit}" 2>/dev/null ||
  git -C "$source" fetch --quiet --depth 1 https://github.com/b4rtaz/distributed-llama "$version" >"$log" 2>&1 ||
  fail "Distributed Llama cannot be fetched at $version"
git -C "$source" checkout --quiet --force --detach "$version" >"$log" 2>&1 || fail "git has no $version"

# nn-cpu-ops.cpp is linked with these, which have no part in attention, so that one build of them is enough.
for file in nn-quants nn-core llamafile/sgemm; do
  "${CXX:-c++}" -std=c++11 -O3 -march=native -fPIC -w -c "$source/src/nn/$file.cpp" -o "$folder/$(basename "$file").o" \
    >"$log" 2>&1 || fail "$file.cpp does not compile"
done
"${CXX:-c++}" -r -nostdlib "$folder/nn-quants.o" "$folder/nn-core.o" "$folder/sgemm.o" -o "$folder/rest.o" \
  >"$log" 2>&1 || fail "nn-quants, nn-core and sgemm are not linked"

sh "$here/build.sh" "$folder" "$source/src/nn/nn-cpu-ops.cpp" "$folder/lib/distributed-llama.so"
sh "$here/build.sh" "$folder" "$source/src/nn/nn-cpu-ops.cpp" "$folder/lib/distributed-llama-plain.so" plain
