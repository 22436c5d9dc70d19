#!/bin/sh
# ONNX Runtime for Python:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs ort_python.py; what ort_kernels.js needs is installed by npm from package-lock.json.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "onnxruntime${2:+==$2}" onnx numpy
