#!/bin/sh
# PaddlePaddle for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs paddle_kernels.py. setuptools: Paddle imports it, and Python 3.12 does not bring it along.
set -eu
exec sh "$(dirname "$0")/../python/environment.sh" "${1:?"usage: sh recipe.sh FOLDER [VERSION]"}" \
  "paddlepaddle==${2:-3.3.1}" setuptools numpy
