#!/usr/bin/env bash
# trust.sh [DTRUN] [FOLDER]: can measurements on this machine be trusted? Compares plain decoding with itself ten times,
# and runs an experiment of 60 runs three times: quiet, next to a busy process, and next to one on every processor.
# Takes minutes; the results stay in FOLDER.
set -u
dtrun=$(realpath "${1:-build/dtrun}")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath -m "${2:-trust}")
mkdir -p "$folder" && cd "$source_dir" || exit 1
models=(--target models/mini-target --draft models/mini-draft)
failed=0

# Each ratio must be from 0.98 to 1.02.
for i in {1..10}; do
  "$dtrun" ar --compare ar "${models[@]}" -p 'It was a dark night, and' -n 400 --ignore-eos --json - 2>>"$folder/same.txt" |
    awk -F '[:,]' '/"compare"/ { for (i = 1; i < NF; i++) if ($i ~ /"speedup"/) printf "%.3f\n", $(i + 1) }'
done | tee "$folder/ratios.txt" | awk '{ if ($1 < 0.98 || $1 > 1.02) bad++; printf "%sx ", $1 } END { print ": " bad + 0, "of", NR, "beyond 2 %"; exit bad > 0 || NR < 10 }' || failed=1

loops=()
quieten() { [ ${#loops[@]} -eq 0 ] || { kill "${loops[@]}"; wait "${loops[@]}" 2>/dev/null; loops=(); }; }
trap quieten EXIT
# measure NAME OTHERS: runs the experiment next to OTHERS busy loops, 3 arms x 5 texts x 4
measure() {
  for ((i = 0; i < $2; i++)); do
    while :; do :; done &
    loops+=($!)
  done
  rm -f "$folder/$1.jsonl"
  "$dtrun" run sweep linear dynatree "${models[@]}" --prompt scripts/prompts/novels/0[1-5].txt --chars 400 -n 200 --ignore-eos \
    --repeats 4 --best 0 --out "$folder/$1.jsonl" 2>/dev/null >&2 || exit 1
  quieten
  "$dtrun" run report "$folder/$1.jsonl" >/dev/null || exit 1
  echo "$1: $(grep '^The machine was busy' "$folder/$1/report.md" || echo 'nothing was disturbed')"
}
measure quiet 0
measure busy 1
measure crowded "$(nproc)"

# The report must say that the machine was busy, and the intervals of the speedups must overlap.
for name in busy crowded; do
  grep -q '^The machine was busy' "$folder/$name/report.md" || { echo "$name: the report does not say that the machine was busy"; failed=1; }
  paste -d, <(grep ',speedup,' "$folder/quiet/report.csv") <(grep ',speedup,' "$folder/$name/report.csv") | awk -F, -v name=$name '$2 == "\"\"" {
    apart = $8 > $18 || $17 > $9
    printf "%s: quiet %.2f [%.2f, %.2f], %s %.2f [%.2f, %.2f]%s\n", $3, $6, $8, $9, name, $15, $17, $18, apart ? " APART" : ""
    bad += apart
  } END { exit bad > 0 }' || failed=1
done
exit $failed
