# A Slurm cluster on this machine alone, for tests that source this file after helpers.sh: a controller and two nodes, n1 and n2, with one
# core each, as root or not, without systemd, all its files in the folder $cluster.
#
# Nothing of it outlives the test, even if the test is killed: the processes of the cluster are found by their slurm.conf, and a
# process that waits for the test's end ends them all.
PATH=$PATH:/usr/sbin:/sbin

# Prints why there can be no cluster here; nothing if there can be one.
cluster_lacks() {
  local program
  for program in munged slurmctld slurmd sbatch; do
    command -v $program >/dev/null || { echo "no $program (Debian: apt-get install slurmctld slurmd slurm-client munge)"; return; }
  done
}

# Prints the process ids of the daemons and of everything that they have started.
cluster_processes() {
  grep -lszxF "SLURM_CONF=$cluster/slurm.conf" /proc/[0-9]*/environ | cut -d / -f 3 | while read -r process; do
    grep -qs . "/proc/$process/cmdline" && echo "$process" # a zombie has none
  done
}

# Ends the cluster and removes its folder; fails if a process could not be ended.
cluster_stop() {
  local try left
  for try in {1..50}; do
    left=$(cluster_processes)
    [ -n "$left" ] || break
    kill -9 $left 2>/dev/null
    sleep 0.1
  done
  rm -rf "$cluster"
  [ -z "$left" ] || { echo "  still there: $left"; return 1; }
}

# Prints the first of n consecutive free ports.
free_ports() {
  local first port try
  for try in {1..50}; do
    first=$((20000 + RANDOM % 10000))
    for ((port = first; port < first + $1; port++)); do
      (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue 2
    done
    echo "$first"
    return
  done
}

configure() {
  local port host
  port=$(free_ports 3)
  host=$(hostname -s)
  cat >"$cluster/slurm.conf" <<END
ClusterName=dtrun
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$cluster/munge.sock
SlurmctldPort=$port
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmctldLogFile=$cluster/slurmctld.log
StateSaveLocation=$cluster/state
SlurmdPidFile=$cluster/%n.pid
SlurmdLogFile=$cluster/%n.log
SlurmdSpoolDir=$cluster/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=2
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
END
}

# Starts the cluster; returns when both nodes are idle, or fails and prints the daemons' logs.
cluster_start() {
  local node try
  cluster=$(mktemp -d)
  chmod 711 "$cluster"
  mkdir "$cluster"/{state,n1,n2}
  (head -c 1024 /dev/urandom >"$cluster/munge.key" && chmod 400 "$cluster/munge.key")
  configure
  (setsid bash -c "while [ -d /proc/$$ ]; do sleep 1; done; cluster=$cluster
    $(declare -f cluster_processes cluster_stop); cluster_stop" </dev/null >/dev/null 2>&1 &)
  export SLURM_CONF=$cluster/slurm.conf
  munged --foreground --force --key-file="$cluster/munge.key" --socket="$cluster/munge.sock" --pid-file="$cluster/munge.pid" \
    --log-file="$cluster/munge.log" --seed-file="$cluster/munge.seed" >"$cluster/munged.out" 2>&1 &
  slurmctld -D -c >"$cluster/slurmctld.out" 2>&1 &
  for node in n1 n2; do slurmd -D -N $node >"$cluster/$node.out" 2>&1 & done
  disown -a
  for try in {1..150}; do
    [ "$(sinfo -h -o '%D %T' 2>/dev/null)" = '2 idle' ] && return
    sleep 0.2
  done
  tail -n 5 "$cluster"/*.{out,log}
  return 1
}

# Waits until no job is queued or running, at most the given number of seconds.
cluster_idle() {
  local try
  for ((try = 0; try < 5 * $1; try++)); do
    [ -n "$(squeue -h)" ] || return 0
    sleep 0.2
  done
  squeue
  fail "jobs that do not end in $1 s"
}
