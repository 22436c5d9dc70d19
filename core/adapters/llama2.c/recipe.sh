#!/bin/sh
# llama2.c's attention on a CPU, as shared libraries:  sh recipe.sh FOLDER [VERSION]
# VERSION is a commit of https://github.com/karpathy/llama2.c. attention.c says what each FOLDER/lib/llama2c*.so is, and
# build.sh makes one of them. CC is the compiler, cc where it is not set; git is needed, too.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
version=${2:-350e04fe35433e6d2941dce5a1f53308f87058eb}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder/lib"
folder=$(cd "$folder" && pwd)
source=$folder/llama2.c
log=$folder/install.log

fail() {
  echo "recipe.sh: $1: $(grep -m 1 -i 'error\|fatal' "$log" || tail -n 1 "$log")" >&2
  exit 1
}

[ -d "$source/.git" ] || git init --quiet "$source" >"$log" 2>&1 || fail "git makes no repository"
git -C "$source" cat-file -e "$version^{commit}" 2>/dev/null ||
  git -C "$source" fetch --quiet --depth 1 https://github.com/karpathy/llama2.c "$version" >"$log" 2>&1 ||
  fail "llama2.c cannot be fetched at $version"
git -C "$source" checkout --quiet --force --detach "$version" >"$log" 2>&1 || fail "git has no $version"

sh "$here/build.sh" "$folder" "$source/run.c" "$folder/lib/llama2c.so"
sh "$here/build.sh" "$folder" "$source/run.c" "$folder/lib/llama2c-fast.so" fast
