#!/usr/bin/env bash
# Fuzzes targets: tests/fuzz/run.sh RUNS|SECONDSs TARGET...   (run.sh 10000000 config costs; run.sh 60s config)
# Needs `cmake --preset fuzz && cmake --build --preset fuzz`. What it finds goes to build/fuzz/found/TARGET, what fails to
# build/fuzz/failed/TARGET-*. The last lines say how many executions there were, and how many per second.
set -eu
cd "$(dirname "$0")/../.."
[ $# -ge 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
amount=-runs=$1
case $1 in *s) amount=-max_total_time=${1%s} ;; esac
shift
for name in "$@"; do
  found=build/fuzz/found/$name longest=8192
  case $name in # longer inputs only take longer
  tokenizer_text) longest=256 ;; # any text is valid
  regex | schema | grammar) longest=512 ;; # enough for all limits of choices, groups, properties and rules
  trace) longest=2048 ;;         # a head, three iterations, an end
  merge) longest=4096 ;;         # a head and four runs
  preset) longest=1024 ;;        # a source, and as many settings as a policy may have
  esac
  dictionary=tests/fuzz/dictionary/$name.txt
  mkdir -p "$found" build/fuzz/failed
  [ -e "$dictionary" ] && dictionary=-dict=$dictionary || dictionary=
  echo "== $name"
  build/fuzz/tests/fuzz/fuzz_"$name" "$amount" -max_len=$longest -timeout=300 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/failed/$name-" $dictionary "$found" "tests/fuzz/corpus/$name" 2>build/fuzz/failed/"$name".log ||
    { tail -40 build/fuzz/failed/"$name".log; exit 1; }
  grep -E '^stat::(number_of_executed|average_exec|slowest|peak_rss)' build/fuzz/failed/"$name".log
done
