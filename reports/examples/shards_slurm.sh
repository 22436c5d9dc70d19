#!/usr/bin/env bash
# One run in shards on a cluster, as a Slurm job array, on a file system that all nodes see:
#   N=64; id=$(sbatch --parsable --array=0-$((N - 1)) shards_slurm.sh $N campaign --kernel ./libmine.so --cases 1000000)
#   sbatch --dependency=afterany:$id --wrap "attest merge campaign/shard-* -o campaign/run.jsonl && \
#                                            attest report campaign/shard-* -o campaign/report.html"
# An array index that failed or was killed is submitted again by itself (--array=17): it goes on where its journal ends.
#SBATCH --job-name=attest
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
set -euo pipefail
shards=$1 folder=$2
shift 2
attest=${ATTEST_PROGRAM:-attest}
run=$folder/shard-$SLURM_ARRAY_TASK_ID
mkdir -p "$folder"
resume=()
[ ! -s "$run/run.jsonl" ] || resume=(--resume)
exec "$attest" check "$@" --jobs 1 --shard "$SLURM_ARRAY_TASK_ID/$shards" --out "$run" "${resume[@]}" --quiet
