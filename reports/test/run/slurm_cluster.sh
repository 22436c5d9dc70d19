#!/usr/bin/env bash
# A Slurm cluster of this machine alone, for a test: a controller and a node on loopback, in a folder of their own.
#   slurm_cluster.sh FOLDER COMMAND [ARGUMENT...]
# Runs COMMAND with $SLURM_CONF set once the node is idle, ends the cluster and gives COMMAND's exit status. Exit status
# 77 with a line where Slurm is not here, 78 with the daemons' last lines where it does not come up.
set -euo pipefail
folder=$1
shift
PATH=$PATH:/usr/sbin
for tool in slurmctld slurmd sbatch sinfo; do
  command -v "$tool" >/dev/null || { echo "$tool is not here; the package slurm-wlm has it"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "only root may start a node of Slurm"; exit 77; }
mkdir -p "$folder/state" "$folder/spool"
# Ports that are free now; nothing else is told of them.
read -r controller node < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')
export SLURM_CONF=$folder/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=attest
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort=$controller
SlurmdPort=$node
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
END
# slurmd asks for one, whatever the other plugins are.
cgroup=cgroup/v1
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || cgroup=cgroup/v2
printf 'CgroupPlugin=%s\nIgnoreSystemd=yes\n' "$cgroup" >"$folder/cgroup.conf"
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
daemons=$!
slurmd -D -N localhost -f "$SLURM_CONF" >/dev/null 2>&1 &
daemons+=" $!"
trap 'kill $daemons 2>/dev/null || true; wait' EXIT
for ((i = 0; i < 300; ++i)); do
  if [ "$(timeout 5 sinfo --noheader --format %T 2>/dev/null)" = idle ]; then
    status=0
    "$@" || status=$?
    exit "$status"
  fi
  sleep 0.2
done
tail -n 5 "$folder"/*.log
exit 78
