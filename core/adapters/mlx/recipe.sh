#!/bin/sh
# MLX for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs mlx_kernels.py.
set -eu
exec sh "$(dirname "$0")/../python/environment.sh" "${1:?"usage: sh recipe.sh FOLDER [VERSION]"}" \
  "mlx[cpu]==${2:-0.32.4}" numpy
