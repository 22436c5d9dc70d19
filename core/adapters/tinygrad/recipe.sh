#!/bin/sh
# tinygrad for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs tinygrad_kernels.py. tinygrad calls clang when it runs, with options that gcc does not
# take: CLANG names it, or it is one of clang, clang-21 … clang-14 on the PATH; FOLDER/bin/clang leads there. The path
# llvm needs libLLVM, too.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
sh "$(dirname "$0")/../python/environment.sh" "$folder" "tinygrad==${2:-0.14.0}" numpy
for clang in "${CLANG:-clang}" clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
  found=$(command -v "$clang") && exec ln -sf "$found" "$folder/bin/clang"
done
echo "recipe.sh: there is no clang on the PATH, which tinygrad calls when it runs" >&2
exit 1
