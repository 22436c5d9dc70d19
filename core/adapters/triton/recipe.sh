#!/bin/sh
# Triton, and the PyTorch whose tensors its kernels take:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs fused_attention.py; without a GPU with TRITON_INTERPRET=1 in the environment.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "triton${2:+==$2}" torch numpy
