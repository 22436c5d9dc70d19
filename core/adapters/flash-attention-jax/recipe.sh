#!/bin/sh
# lucidrains' flash-attention-jax over JAX, for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs flash_attention_jax_kernels.py.
set -eu
exec sh "$(dirname "$0")/../python/environment.sh" "${1:?"usage: sh recipe.sh FOLDER [VERSION]"}" \
  "flash-attention-jax==${2:-0.3.1}" jax jaxlib numpy
