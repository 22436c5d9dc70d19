#!/bin/sh
# Hugging Face's Transformers over PyTorch, for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs eager_attention.py. Which build of PyTorch pip finds, the recipe of pytorch says.
set -eu
exec sh "$(dirname "$0")/../python/environment.sh" "${1:?"usage: sh recipe.sh FOLDER [VERSION]"}" \
  "transformers==${2:-5.24.0}" torch numpy
