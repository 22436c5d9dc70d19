#!/bin/sh
# Flax over JAX, for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs flax_kernels.py.
set -eu
exec sh "$(dirname "$0")/../python/environment.sh" "${1:?"usage: sh recipe.sh FOLDER [VERSION]"}" \
  "flax==${2:-0.12.8}" jax jaxlib ml_dtypes numpy
