#!/usr/bin/env bash
# How speed holds next to other busy processes: busy.sh [-o OTHERS] [-r ROUNDS] [-n TOKENS] DTRUN [BEFORE]
#
# Meant for a machine with two processors that is otherwise idle. Measures tokens/s of `linear` with one and with two
# threads, alone and next to OTHERS (1) busy loops of equal priority. BEFORE is another build, which takes its turn in
# every round. Prints medians over the rounds (15). Fails unless two threads next to the loops reach 0.9 of the speed of
# one thread there, and, alone, 0.98 of the speed of BEFORE.
set -u
others=1 rounds=15 tokens=200
while getopts o:r:n: option; do
  case $option in
    o) others=$OPTARG ;; r) rounds=$OPTARG ;; n) tokens=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || { sed -n 2p "$0"; exit 2; }
work=$(mktemp -d)
loops=()
quiet() { [ ${#loops[@]} -eq 0 ] || { kill "${loops[@]}"; wait "${loops[@]}" 2>/dev/null; loops=(); }; }
trap 'quiet; rm -rf "$work"' EXIT

# measure NAME DTRUN THREADS
measure() {
  "$2" linear -q -t "$3" -n "$tokens" --ignore-eos -p 'The old man went down to the' --json - |
    awk -F '[:,]' '/"tokens_per_second"/ { print $2; found = 1 } END { exit !found }' >>"$work/$1" || exit 1
}
round() { # round NAME DTRUN..
  measure "$1.one" "$2" 1
  measure "$1.two" "$2" 2
  [ $# -lt 3 ] || { measure "$1.before.one" "$3" 1; measure "$1.before.two" "$3" 2; }
}
for ((i = 0; i < rounds; i++)); do
  round idle "$@"
  for ((k = 0; k < others; k++)); do
    while :; do :; done &
    loops+=($!)
  done
  round busy "$@"
  quiet
done

median() { sort -g "$work/$1" | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }
# against WHAT NAME NAME LEAST: prints the ratio of two medians; fails if it is below LEAST
against() {
  awk -v what="$1" -v a="$(median "$2")" -v b="$(median "$3")" -v least="$4" \
    'BEGIN { printf "%-44s %7.0f / %7.0f tokens/s = %.3f  (at least %s)\n", what, a, b, a / b, least; exit a / b < least }'
}
status=0
against "next to $others busy: two threads / one" busy.two busy.one 0.9 || status=1
against 'alone: two threads / one' idle.two idle.one 1 || status=1
if [ $# -ge 2 ]; then
  against 'alone: two threads / two before' idle.two idle.before.two 0.98 || status=1
  against 'alone: one thread / one before' idle.one idle.before.one 0.98 || status=1
  against "next to $others busy: two threads / two before" busy.two busy.before.two 1 || status=1
fi
exit $status
