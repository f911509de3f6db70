#!/usr/bin/env bash
# again.sh [--table FILE] [--list | --quick | NAME...]: measures figures of the results pages again, those that this
# machine can measure, and compares them with the stored ones. --quick: those that take less than a minute.
#
# The table, results/again.txt, explains its rows. Prints a line for each figure: the stored one, today's, their ratio
# and whether they agree; or why this machine cannot measure it. Rows with the same command share one run.
#
# Exit status: 0: what was compared agrees; 1: a figure differs, or a command failed; 2: a mistake in the arguments or
# in the table.
# Environment: DTRUN (build/dtrun), MODELS (a folder with further models), LLAMA_BENCH and LLAMA_SERVER (programs of
# llama.cpp; otherwise those in PATH).
set -u
die() { echo "again.sh: $1" >&2; exit 2; }

root=$(cd "$(dirname "$0")/../.." && pwd)
table=$root/tests/bench/results/again.txt mode=all wanted=()
while [ $# -gt 0 ]; do
  case $1 in
    --table) table=$(realpath "${2-}" 2>/dev/null) && [ -f "$table" ] || die "--table '${2-}': no such file"; shift ;;
    --list | --quick) mode=${1#--} ;;
    -*) die "unknown option $1; expected --table FILE, --list, --quick or names" ;;
    *) wanted+=("$1") ;;
  esac
  shift
done

# ---- the table -----------------------------------------------------------------------------------------------------

keys=(name what stored on page within needs seconds run take)
optional=' needs take '
known_needs=(smollm2 qwen llama-bench llama-server bench_limit gpu avx512 avx2 quiet)
declare -A rows=()  # "NAME KEY" -> text
declare -A timed=() # command -> 1, if a row with it needs a quiet machine
names=() number=0

mistake() { die "$table:$number: $1"; }
among() { [[ " ${*:2} " = *" $1 "* ]]; }
of() { echo "${rows[$1 $2]-}"; }
is_number() { [[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]]; }

# check_row NAME: ends the program if the row that ends here lacks something; looks up the command of another row
check_row() {
  local key need other
  for key in "${keys[@]}"; do
    [ -n "$(of "$1" "$key")" ] || [[ $optional = *" $key "* ]] || mistake "$1 has no $key"
  done
  [[ $(of "$1" within) =~ ^(exact|shown|[0-9]+\ %)$ ]] || mistake "$1: within '$(of "$1" within)': expected exact, shown or a number of percent such as 10 %"
  [[ $(of "$1" seconds) =~ ^[0-9]+$ ]] || mistake "$1: seconds '$(of "$1" seconds)': expected a whole number"
  [ "$(of "$1" within)" = exact ] || is_number "$(of "$1" stored)" || mistake "$1: stored '$(of "$1" stored)': expected a number"
  if [[ $(of "$1" run) =~ ^as\ ([^ ]+)$ ]]; then
    other=${BASH_REMATCH[1]}
    [ "$other" != "$1" ] && among "$other" "${names[@]}" || mistake "$1: run as '$other': expected the name of an earlier row"
    rows[$1 run]=${rows[$other run]}
  fi
  for need in $(of "$1" needs); do
    among "$need" "${known_needs[@]}" || mistake "$1 needs '$need'; known: ${known_needs[*]}"
    [ "$need" != quiet ] || timed[$(of "$1" run)]=1
  done
}
read_table() {
  local text name='' key
  while IFS= read -r text || [ -n "$text" ]; do
    number=$((number + 1))
    [[ $text = \#* ]] && continue
    if [ -z "$text" ]; then
      [ -z "$name" ] || check_row "$name"
      name=''
      continue
    fi
    [[ $text =~ ^([a-z]+):\ +(.+)$ ]] || mistake "expected KEY: TEXT"
    key=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    among "$key" "${keys[@]}" || mistake "unknown key '$key'; known: ${keys[*]}"
    if [ "$key" = name ]; then
      [ -z "$name" ] || mistake "$name is not finished: an empty line is missing"
      ! among "$text" ${names[@]+"${names[@]}"} || mistake "a second row is called $text"
      name=$text
      names+=("$name")
    fi
    [ -n "$name" ] || mistake "a row begins with name:"
    rows[$name $key]=$text
  done <"$table"
  [ -z "$name" ] || check_row "$name"
  [ ${#names[@]} -gt 0 ] || die "$table: no rows"
}
read_table
for name in ${wanted[@]+"${wanted[@]}"}; do
  among "$name" "${names[@]}" || die "no figure '$name'; known: ${names[*]}"
done
[ ${#wanted[@]} -gt 0 ] || wanted=("${names[@]}")

if [ "$mode" = list ]; then
  for name in "${wanted[@]}"; do
    printf '%-22s %-16s %-7s %4s s  %s (%s; %s)\n' "$name" "$(of "$name" stored)" "$(of "$name" within)" "$(of "$name" seconds)" \
      "$(of "$name" what)" "$(of "$name" on)" "$(of "$name" page)"
  done
  exit
fi

# ---- this machine --------------------------------------------------------------------------------------------------

DTRUN=$(realpath "${DTRUN:-$root/build/dtrun}")
[ -x "$DTRUN" ] || die "no $DTRUN: build dtrun, or give DTRUN=PATH"
BUILD=$(dirname "$DTRUN") LLAMA_BENCH=${LLAMA_BENCH:-llama-bench} LLAMA_SERVER=${LLAMA_SERVER:-llama-server} WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
MODELS=$(realpath -m "${MODELS:-$root/models}")
cd "$root" || exit 2

# model FILE: prints its path, in MODELS or in models; or its name
model() {
  local folder
  for folder in "$MODELS" models; do
    [ ! -f "$folder/$1" ] || { echo "$folder/$1"; return; }
  done
  echo "$1"
}
SMOLLM2=$(model SmolLM2-135M-Instruct.Q4_1.gguf)
QWEN=$(model qwen2.5-coder-1.5b-instruct-q4_k_m.gguf)
QWEN_DRAFT=$(model qwen2.5-coder-0.5b-instruct-q4_k_m.gguf)
export DTRUN BUILD MODELS LLAMA_BENCH LLAMA_SERVER WORK SMOLLM2 QWEN QWEN_DRAFT

# jiffies: prints the processors' time so far, busy and in all
jiffies() { awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all - $5 - $6, all }' /proc/stat; }
busy_percent() {
  local before after
  before=$(jiffies)
  sleep 0.5
  after=$(jiffies)
  awk -v a="$before" -v b="$after" 'BEGIN { split(a, x); split(b, y); printf "%.0f", 100 * (y[1] - x[1]) / (y[2] - x[2]) }'
}
# lacks NEED: prints what this machine lacks, and what would help; nothing if it lacks nothing
lacks() {
  local file busy
  case $1 in
    smollm2) [ -f "$SMOLLM2" ] || echo "no $SMOLLM2: scripts/get-model smollm2" ;;
    qwen)
      for file in "$QWEN" "$QWEN_DRAFT"; do
        [ -f "$file" ] || { echo "no $file: give MODELS=FOLDER"; return; }
      done ;;
    llama-bench) command -v "$LLAMA_BENCH" >/dev/null || echo "no $LLAMA_BENCH: give LLAMA_BENCH=PATH" ;;
    llama-server) command -v "$LLAMA_SERVER" >/dev/null || echo "no $LLAMA_SERVER: give LLAMA_SERVER=PATH" ;;
    bench_limit) [ -x "$BUILD/tests/bench_limit" ] || echo "no $BUILD/tests/bench_limit: cmake --build $BUILD --target bench_limit" ;;
    gpu) "$DTRUN" ar --backend cuda -p It -n 1 -q >/dev/null 2>&1 || echo 'no GPU' ;;
    avx512) grep -qw avx512f /proc/cpuinfo || echo 'no AVX-512' ;;
    avx2) ! grep -qw avx512f /proc/cpuinfo && grep -qw avx2 /proc/cpuinfo || echo 'not a machine whose best instructions are AVX2' ;;
    quiet)
      busy=$(busy_percent)
      [ "$busy" -le 10 ] || echo "the machine is busy ($busy %): try again when nothing else runs" ;;
  esac
}

# ---- measuring -----------------------------------------------------------------------------------------------------

declare -A ran=() # command -> its number
agree=0 compared=0 shown=0 left_out=0 longer=0

# measure NAME: leaves today's figure in $now; or returns 1, with the reason in $now
measure() {
  local command out status
  command=$(of "$1" run)
  out=$WORK/out.${ran[$command]:-${#ran[@]}}
  if [ -z "${ran[$command]:-}" ]; then
    ran[$command]=${#ran[@]}
    [ -z "${timed[$command]:-}" ] || lacks quiet >"$out.busy"
    bash -o pipefail -c "$command" >"$out" 2>"$out.err" </dev/null
    echo $? >"$out.status"
    [ -z "${timed[$command]:-}" ] || [ -s "$out.busy" ] || lacks quiet >"$out.busy" # it may have become busy meanwhile
  fi
  status=$(<"$out.status")
  if [ "$status" -ne 0 ]; then
    now="exit status $status: $(cat "$out.err" "$out" | tail -n 1)"
    return 1
  fi
  now=$(awk "${rows[$1 take]:-1}" "$out" 2>/dev/null | awk 'NF { last = $NF } END { sub(/[x%]$/, "", last); print last }')
  [ -n "$now" ] || now='the figure is not in its output'
  is_number "$now" || [[ $(of "$1" within) = exact && $now != *' '* ]]
}
line() { printf '%-22s %-16s %-16s %6s  %s\n' "$@"; }
compare() {
  local stored within ratio
  stored=$(of "$1" stored) within=$(of "$1" within)
  ratio=-
  ! is_number "$now" || ! is_number "$stored" || ratio=$(awk -v a="$now" -v b="$stored" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "-" }')
  if [ "$within" = shown ]; then
    shown=$((shown + 1))
    line "$1" "$stored" "$now" "$ratio" "shown only (stored: $(of "$1" on))"
    return
  fi
  compared=$((compared + 1))
  if [ "$within" = exact ]; then
    [ "$now" = "$stored" ]
  else
    awk -v a="$now" -v b="$stored" -v p="${within% %}" 'BEGIN { exit !((a - b) ^ 2 <= (p / 100 * b) ^ 2 + 1e-12) }'
  fi && agree=$((agree + 1)) && line "$1" "$stored" "$now" "$ratio" "agrees ($within; stored: $(of "$1" on))" && return
  line "$1" "$stored" "$now" "$ratio" "DIFFERS ($within; stored: $(of "$1" on))"
}
# leave_out NAME WHY: returns 1
leave_out() {
  left_out=$((left_out + 1))
  line "$1" "$(of "$1" stored)" - - "$2"
  return 1
}
repeat() {
  local need reason=''
  for need in $(of "$1" needs); do
    [ -n "${ran[$(of "$1" run)]:-}" ] || reason=$(lacks "$need") # what a command needs is there once it has run
    [ -z "$reason" ] || leave_out "$1" "not run: $reason" || return
  done
  [ ! -t 2 ] || echo "again.sh: $1: about $(of "$1" seconds) s" >&2
  if measure "$1"; then
    reason=$(cat "$WORK/out.${ran[$(of "$1" run)]}.busy" 2>/dev/null)
    [ -n "$reason" ] && among quiet "$(of "$1" needs)" && { leave_out "$1" "not counted: $reason" || return; }
    compare "$1"
  else
    compared=$((compared + 1))
    line "$1" "$(of "$1" stored)" - - "FAILED: $now"
  fi
}

awk -F ': ' '{ sub(/[\t ]+$/, "", $1); fact[$1] = $2 } /^$/ { exit }
  END { printf "%s (family %s, model %s), ", fact["model name"], fact["cpu family"], fact["model"] }' /proc/cpuinfo
echo "$(nproc) processors; $("$DTRUN" --version | head -n 1)"
line figure stored now ratio ''
for name in "${wanted[@]}"; do
  if [ "$mode" = quick ] && [ "$(of "$name" seconds)" -ge 60 ]; then
    longer=$((longer + 1))
  else
    repeat "$name"
  fi
done
echo "$agree of $compared agree; shown only: $shown; not run: $left_out$([ $longer -eq 0 ] || echo "; longer than a minute: $longer")"
[ $agree -eq $compared ]
