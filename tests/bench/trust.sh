#!/usr/bin/env bash
# trust.sh [DTRUN] [FOLDER]: can the measurements of this machine be relied on? Ten comparisons of plain decoding with itself, and
# one experiment of 60 runs twice, the second time beside a busy process on every processor. Minutes; results stay in FOLDER.
set -u
dtrun=$(realpath "${1:-build/dtrun}")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
folder=${2:-trust}
mkdir -p "$folder" && cd "$folder" || exit 1
failed=0

# Wants 0.98x to 1.02x each time.
for i in {1..10}; do
  "$dtrun" ar --compare ar -p 'It was a dark night, and' -n 400 --ignore-eos 2>&1 >/dev/null | tee -a same.txt | grep -oE '[0-9.]+x, same.*'
done | awk '{ x = $1 + 0; if (x < 0.98 || x > 1.02) bad++ } { print } END { print bad + 0, "of", NR, "beyond 2 %"; exit bad > 0 }' || failed=1

sweep=(run sweep linear dynatree --prompt "$source_dir"/tests/data/prompts/novels/0[1-5].txt --chars 400 -n 200 --ignore-eos --repeats 4)
"$dtrun" "${sweep[@]}" --out quiet.jsonl || exit 1 # 3 arms x 5 texts x 4
busy=()
for ((i = 0; i < $(nproc); i++)); do
  bash -c 'while :; do :; done' &
  busy+=($!)
done
"$dtrun" "${sweep[@]}" --out busy.jsonl
kill "${busy[@]}"
for name in quiet busy; do
  "$dtrun" run report $name.jsonl
  echo "$name: $(grep '^The machine was busy' $name/report.md || echo 'nothing disturbed')"
done
grep -q '^The machine was busy' busy/report.md || { echo 'the busy run was not noticed'; failed=1; }

# Intervals of the speed-ups overlap.
paste -d, <(grep ',speedup,' quiet/report.csv) <(grep ',speedup,' busy/report.csv) | awk -F, '$2 == "\"\"" {
  apart = $8 > $18 || $17 > $9
  printf "%s: quiet %.2f [%.2f, %.2f], busy %.2f [%.2f, %.2f]%s\n", $3, $6, $8, $9, $15, $17, $18, apart ? " APART" : ""
  bad += apart
} END { exit bad > 0 }' || failed=1
exit $failed
