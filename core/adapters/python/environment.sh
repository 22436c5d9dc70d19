#!/bin/sh
# Makes FOLDER a virtual environment that holds the requirements, for the recipe.sh of a library:
#     sh environment.sh FOLDER REQUIREMENT...
# A name that pins.txt lists is installed in the release that stands there. PYTHON is the interpreter to build on,
# python3 where it is not set. What is installed already is left as it is.
set -eu
folder=$1
shift
pins=$(dirname "$0")/../pins.txt
log=$folder/install.log

fail() {
  echo "recipe.sh: $1" >&2
  exit 1
}

for requirement in "$@"; do
  shift
  set -- "$@" "$(grep -x "$requirement==.*" "$pins" || echo "$requirement")"
done
mkdir -p "$folder"
"$folder/bin/python" -m pip --version >/dev/null 2>&1 || "${PYTHON:-python3}" -m venv "$folder" >"$log" 2>&1 ||
  fail "${PYTHON:-python3} makes no virtual environment: $(grep -m 1 'apt install' "$log" || grep . "$log" | tail -n 1)"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 "$@" >"$log" 2>&1 ||
  fail "pip does not install $*: $(grep -m 1 '^ERROR' "$log" || tail -n 1 "$log")"
