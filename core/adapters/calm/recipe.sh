#!/bin/sh
# calm's attention on a CPU, as a shared library:  sh recipe.sh FOLDER [VERSION]
# VERSION is a commit of https://github.com/zeux/calm. FOLDER/lib/calm.so is attention.c, and build.sh makes it. CC is
# the compiler, cc where it is not set, and has to know _Float16; git is needed, too.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
version=${2:-cab0b7b44965e7deeb12a6a188b7d64ce224498e}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder/lib"
folder=$(cd "$folder" && pwd)
source=$folder/calm
log=$folder/install.log

fail() {
  echo "recipe.sh: $1: $(grep -m 1 -i 'error\|fatal' "$log" || tail -n 1 "$log")" >&2
  exit 1
}

[ -d "$source/.git" ] || git init --quiet "$source" >"$log" 2>&1 || fail "git makes no repository"
git -C "$source" cat-file -e "$version^{commit}" 2>/dev/null ||
  git -C "$source" fetch --quiet --depth 1 https://github.com/zeux/calm "$version" >"$log" 2>&1 ||
  fail "calm cannot be fetched at $version"
git -C "$source" checkout --quiet --force --detach "$version" >"$log" 2>&1 || fail "git has no $version"

sh "$here/build.sh" "$folder" "$source/src/infer.c" "$folder/lib/calm.so"
