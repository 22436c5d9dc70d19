#!/bin/sh
# OpenVINO for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs openvino_kernel.py.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "openvino${2:+==$2}" numpy
