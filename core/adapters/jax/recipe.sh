#!/bin/sh
# JAX for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs the adapters here.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "jax${2:+==$2}" "jaxlib${2:+==$2}" ml_dtypes numpy
