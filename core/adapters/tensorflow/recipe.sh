#!/bin/sh
# Keras and TensorFlow for a CPU:  sh recipe.sh FOLDER [VERSION]
# VERSION is TensorFlow's; Keras is the release below. FOLDER/bin/python then runs keras_kernels.py.
set -eu
exec sh "$(dirname "$0")/../python/environment.sh" "${1:?"usage: sh recipe.sh FOLDER [VERSION]"}" \
  "tensorflow-cpu==${2:-2.21.0}" keras==3.15.1 ml_dtypes numpy
