#!/bin/sh
# llm.c's attention on a CPU, as shared libraries:  sh recipe.sh FOLDER [VERSION]
# VERSION is a commit of https://github.com/karpathy/llm.c. attention.c says what each FOLDER/lib/llmc*.so is. CC is the
# compiler, cc where it is not set; make and git are needed, too.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
version=${2:-f1e2ace651495b74ae22d45d1723443fd00ecd3a}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder/lib"
folder=$(cd "$folder" && pwd)
source=$folder/llm.c
log=$folder/install.log

fail() {
  echo "recipe.sh: $1: $(grep -m 1 -i 'error\|fatal' "$log" || tail -n 1 "$log")" >&2
  exit 1
}

[ -d "$source/.git" ] || git init --quiet "$source" >"$log" 2>&1 || fail "git makes no repository"
git -C "$source" cat-file -e "$version^{commit}" 2>/dev/null ||
  git -C "$source" fetch --quiet --depth 1 https://github.com/karpathy/llm.c "$version" >"$log" 2>&1 ||
  fail "llm.c cannot be fetched at $version"
git -C "$source" checkout --quiet --force --detach "$version" >"$log" 2>&1 || fail "git has no $version"

cc=${CC:-cc}
common="-DTESTING -fPIC -w -c"
# As C says, and with what the Makefile itself finds for its programs.
{
  "$cc" -O2 $common "$source/train_gpt2.c" -o "$folder/llmc.o" &&
    make -C "$source" CC="$cc" GPU_COMPUTE_CAPABILITY= NO_MULTI_GPU=1 NO_USE_MPI=1 NO_OMP=1 \
      --eval "attention: train_gpt2.c; \$(CC) \$(CFLAGS) $common \$< -o '$folder/llmc-makefile.o'" attention
} >"$log" 2>&1 || fail "train_gpt2.c does not compile"

for build in "" -makefile; do
  for what in "" -gradients; do
    set -- "-DLLMC_VERSION=\"$(echo "$version" | cut -c 1-7)\""
    [ -z "$build" ] || set -- "$@" -DLLMC_MAKEFILE
    [ -z "$what" ] || set -- "$@" -DLLMC_GRADIENTS
    "$cc" -O2 -std=c99 -shared -fPIC "$@" -I "$here/../../include" "$here/attention.c" "$folder/llmc$build.o" -lm \
      -o "$folder/lib/llmc$build$what.so" >"$log" 2>&1 || fail "attention.c does not compile"
  done
done
