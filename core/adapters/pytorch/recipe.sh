#!/bin/sh
# PyTorch for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs the adapters here. The release that is pinned is the build without CUDA, which pip finds
# where it knows the index of those builds (PIP_EXTRA_INDEX_URL); a VERSION without +cpu is that of PyPI, CUDA and all.
# flex_kernels.py flex-compiled needs a C++ compiler and Python's headers when it runs, too.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "torch${2:+==$2}" numpy
