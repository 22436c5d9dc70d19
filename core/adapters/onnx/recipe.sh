#!/bin/sh
# ONNX with its reference implementation of the operators:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs reference_attention.py.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "onnx${2:+==$2}" ml_dtypes numpy
