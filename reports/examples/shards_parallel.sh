#!/usr/bin/env bash
# One run in shards on one machine, by GNU parallel:
#   shards_parallel.sh SHARDS FOLDER CHECK-OPTIONS...
#   shards_parallel.sh 8 campaign --kernel ./libmine.so --cases 1000000
# Leaves FOLDER/shard-0 … and FOLDER/run.jsonl, the journal that one run without shards would have left, and
# FOLDER/report.html. Run again with the same words it goes on with the shards that were cut short.
# Exit status: 1 where a shard found a violation, else the smallest of theirs that is not 0, else 0.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: $0 SHARDS FOLDER CHECK-OPTIONS..." >&2; exit 2; }
command -v parallel >/dev/null || { echo "$0: GNU parallel is missing; install the package parallel" >&2; exit 2; }
shards=$1 folder=$2
shift 2
attest=${ATTEST_PROGRAM:-attest}
mkdir -p "$folder"

shard() { # shard I/N FOLDER CHECK-OPTIONS...
  local part=$1 run=$2
  shift 2
  # A run that has a journal is gone on with; what it finished is not run again.
  local resume=()
  [ ! -s "$run/run.jsonl" ] || resume=(--resume)
  # A core each: the shards are the parallelism.
  "$attest" check "$@" --jobs 1 --shard "$part" --out "$run" "${resume[@]}" --quiet
}
export -f shard
export attest

# The log's seventh column is the exit status, its eighth the signal; parallel's own status counts failures.
log=$folder/parallel.log
rm -f "$log"
SHELL=$BASH parallel --will-cite --joblog "$log" --jobs "${JOBS:-100%}" --quote \
  shard "{}/$shards" "$folder/shard-{}" "$@" ::: $(seq 0 $((shards - 1))) || true
statuses=$(awk 'NR > 1 { print $8 ? 128 + $8 : $7 }' "$log" | sort -nu)
runs=()
for ((i = 0; i < shards; ++i)); do runs+=("$folder/shard-$i"); done
"$attest" merge "${runs[@]}" -o "$folder/run.jsonl"
"$attest" report "${runs[@]}" -o "$folder/report.html"
if grep -qx 1 <<<"$statuses"; then exit 1; fi
for status in $statuses; do [ "$status" = 0 ] || exit "$status"; done
