#!/usr/bin/env bash
# `dtrun run bench`: its tables and files, next to a program that answers as llama-bench does; stopped and continued.
. "$(dirname "$0")/helpers.sh"

# makes_peer FILE PROMPT_SPEED SPEED: a program that prints what llama-bench prints
makes_peer() {
  cat >"$1" <<EOF
#!/bin/sh
echo "\$@" >>$PWD/asked
echo '[{"build_commit": "abc123", "n_prompt": 512, "n_gen": 0, "avg_ts": $2}, {"build_commit": "abc123", "n_prompt": 0, "n_gen": 128, "avg_ts": $3}]'
EOF
  chmod +x "$1"
}
# The bundled pair has no GGUF file, so a golden one is measured.
model=$source_dir/tests/golden/logits/gguf_gpt_oss/model.gguf
bench() { XDG_CACHE_HOME=$PWD succeeds run bench --quick -m "$model" -md none --backend cpu -t 1 "$@"; }
field() { "$dtrun" run "$source_dir/tests/cli/bench_field.lua" "$1" "$2"; }

it_measures_a_model_and_llama_bench_in_turns() {
  makes_peer peer 0.5 0.25
  bench --against "llama-bench=$PWD/peer" --out b
  [ "$(wc -l <asked)" -eq 2 ] || fail "llama-bench ran $(wc -l <asked) times, expected one run in each of two rounds"
  grep -qx -- "-m $model -t 1 -p 512 -n 128 -r 1 -o json" asked || fail "it was run with: $(head -n 1 asked)"
  for row in pp512 tg128; do
    grep -qE "^\| [^|]+ \| +[0-9.]+ GiB \| +cpu:[a-z0-9]+ \| +1 \| +$row \| +[0-9.]+ ± [0-9.]+ \| +0\.[25][50] ± 0\.00 \| +[0-9.]+ \|$" stdout || fail "no row of $row"
  done
  grep -qE '^\| times one row +\| +1\.00 \|' stdout || fail 'no cost of rows'
  grep -qE '^\| rate +\| +[0-9.]+ \| +[0-9.]+ \| +[0-9.]+ \|$' stdout || fail 'no row of rate'
  grep -q 'abc123' b/report.html || fail 'the page is without the table'
  ours=$(field b.json rounds.1.tg128)
  [ "$(awk "BEGIN { print ($ours > 1) }")" -eq 1 ] || fail "decoding at $ours tokens/s"
  [ "$(field b.json facts.against)" = "llama-bench=$PWD/peer" ] || fail 'no peer in the facts'
  [ "$(field b.json policies.1.policy)" != nil ] || fail 'no policies in the file'
}
it_compares_within_rounds() { # the median of ratios, not the ratio of medians: they differ if one round is slow
  cat >peer <<EOF
#!/bin/sh
echo >>$PWD/asked
[ "\$(wc -l <$PWD/asked)" -eq 1 ] && speed=1 || speed=100
echo "[{\"build_commit\": \"a\", \"n_prompt\": 512, \"n_gen\": 0, \"avg_ts\": \$speed}, {\"build_commit\": \"a\", \"n_prompt\": 0, \"n_gen\": 128, \"avg_ts\": \$speed}]"
EOF
  chmod +x peer
  bench --against "llama-bench=$PWD/peer" --out b
  expected=$(awk "BEGIN { printf \"%.2f\", ($(field b.json rounds.1.tg128) + $(field b.json rounds.2.tg128) / 100) / 2 }")
  grep -qE "^\| [^|]+ \|.*\| +tg128 \|.*\| +$expected \|$" stdout || fail "no ratio of $expected"
}
it_goes_on_where_it_was_stopped() {
  makes_peer peer 9 9
  bench --against "llama-bench=$PWD/peer" --out b
  cp b.json whole.json
  cp b.jsonl whole.jsonl
  "$dtrun" run "$source_dir/tests/cli/bench_field.lua" whole.json rounds.2 cut >b.json # as if it had ended in the second round
  head -n 2 whole.jsonl >b.jsonl
  rm asked
  bench --against "llama-bench=$PWD/peer" --out b
  [ "$(wc -l <asked)" -eq 1 ] || fail "llama-bench ran $(wc -l <asked) times, expected the round that is missing"
  [ "$(field b.json rounds.1.tg128)" = "$(field whole.json rounds.1.tg128)" ] || fail 'the first round was measured again'
  [ "$(wc -l <b.jsonl)" -eq "$(wc -l <whole.jsonl)" ] || fail 'the runs of policies are not complete'
  rm asked
  bench --against "llama-bench=$PWD/peer" --out b
  [ ! -e asked ] || fail 'a complete benchmark was measured again'
  grep -q '^| rate ' stdout || fail 'a complete benchmark is not shown'
  refuses 2 'b.json: made with against = llama-bench=.*, not nil: choose another --out' run bench --quick -m "$model" -md none --backend cpu -t 1 --out b
}
it_names_its_files_after_the_model() {
  bench
  [ -s bench-model.json ] && [ -s bench-model/report.html ] || fail "files: $(ls)"
}
it_refuses_what_it_cannot_use() {
  refuses 2 "--against llama: expected llama-bench=PATH, the program of llama.cpp" run bench --quick --against llama
  refuses 2 '--against: nowhere: No such file' run bench --quick --against llama-bench=nowhere
  makes_peer peer 1 1
  refuses 2 '--against: llama-bench reads GGUF files, and .*mini-target is none' run bench --quick --against llama-bench=peer
  refuses 2 'bench: .*mini-target has a context of 512, and 513 are needed' run bench --quick -c 512
  succeeds run bench --quick -md none -t 1 -c 513 --out least
  refuses 2 'bench: .*model.gguf has a context of 256, and 513 are needed' run bench --quick -m "$source_dir/tests/golden/logits/gguf_olmo2/model.gguf"
  echo '{"schema": "other"}' >b.json
  refuses 2 'b.json: not a result of bench: choose another --out' run bench --quick --out b
  printf '#!/bin/sh\nexit 3\n' >peer
  run "$dtrun" run bench --quick -m "$model" -md none --backend cpu -t 1 --against llama-bench=./peer --out c
  [ "$status" -eq 1 ] || fail "exit status $status"
  grep -q '^dtrun: ./peer failed with status 3; try: ./peer -m ' stderr || fail 'the failure is not reported'
  printf '#!/bin/sh\necho "[{}]"\n' >peer
  run "$dtrun" run bench --quick -m "$model" -md none --backend cpu -t 1 --against llama-bench=./peer --out c
  grep -q "^dtrun: ./peer: a test without avg_ts, expected llama-bench's JSON" stderr || fail 'a wrong output is not reported'
}

run_tests
