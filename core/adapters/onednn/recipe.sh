#!/bin/sh
# oneDNN for a CPU, as Debian builds it, and the kernel libraries over it:  sh recipe.sh FOLDER [VERSION]
# VERSION is that of Debian's packages libdnnl2 and libdnnl-dev; apt-get and dpkg-deb are needed, and no root. What
# FOLDER/lib/onednn-*.so are, attention.cc says. CXX is the compiler, c++ where it is not set.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
version=${2:-2.6.3-1}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder/lib" "$folder/packages"
folder=$(cd "$folder" && pwd)
log=$folder/install.log

fail() {
  echo "recipe.sh: $1: $(grep -m 1 -i 'error\|^E:' "$log" || tail -n 1 "$log")" >&2
  exit 1
}

# The loader of OpenCL is a dependency that is not on every machine.
if [ "$(cat "$folder/version" 2>/dev/null)" != "$version" ]; then
  rm -rf "$folder/packages" "$folder/usr"
  mkdir "$folder/packages"
  (cd "$folder/packages" && apt-get download "libdnnl2=$version" "libdnnl-dev=$version" ocl-icd-libopencl1) \
    >"$log" 2>&1 || fail "apt-get has no libdnnl-dev $version; apt-get update may be due"
  for package in "$folder"/packages/*.deb; do
    dpkg-deb -x "$package" "$folder" >"$log" 2>&1 || fail "$package cannot be unpacked"
  done
  echo "$version" >"$folder/version"
fi

linked=$(find "$folder/usr/lib" -name libdnnl.so)
libraries=$(dirname "$linked")
for path in avx512_core_bf16 avx512_core avx2 sse41 ref; do
  for scores in "" -f32-scores; do
    case $path$scores in avx2-f32-scores | sse41-f32-scores) continue ;; esac
    set -- "-DATTEST_PATH=$path" "-DATTEST_PATH_NAME=\"$path\""
    [ -z "$scores" ] || set -- "$@" -DATTEST_F32_SCORES
    # As an RPATH it holds for the libraries that libdnnl is linked to, too.
    "${CXX:-c++}" -std=c++20 -O2 -fopenmp -shared -fPIC -fvisibility=hidden -Wall -Wextra "$@" -I "$here/../../include" \
      -isystem "$folder/usr/include" "$here/attention.cc" -L "$libraries" -ldnnl \
      "-Wl,--disable-new-dtags,-rpath,\$ORIGIN/../${libraries#"$folder"/}" \
      -o "$folder/lib/onednn-$path$scores.so" >"$log" 2>&1 || fail "attention.cc does not compile"
  done
done
