#!/bin/sh
# ncnn for a CPU:  sh recipe.sh FOLDER [VERSION]
# FOLDER/bin/python then runs the adapter here.
set -eu
folder=${1:?"usage: sh recipe.sh FOLDER [VERSION]"}
exec sh "$(dirname "$0")/../python/environment.sh" "$folder" "ncnn==${2:-1.0.20261020}" numpy
