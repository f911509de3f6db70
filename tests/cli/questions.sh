#!/usr/bin/env bash
# `dtrun run paper spec_bench` and `speed_bench`, on files of the benchmarks' forms that are made here.
. "$(dirname "$0")/helpers.sh"
spec=(run paper spec_bench -t 1 --template chatml --costs learn -n 6)

# make_spec: the folder spec/ with the file question.jsonl, in Spec-Bench's form
make_spec() {
  mkdir -p spec
  cat >spec/question.jsonl <<'LINES'
{"question_id": 81, "category": "writing", "turns": ["Who are you?", "And now?"], "reference": ["", ""]}
{"question_id": 82, "category": "writing", "turns": ["What is it?", "Why?"]}
{"question_id": 111, "category": "math", "turns": ["What is 2 + 2?", "And 3 + 3?"]}
{"question_id": 481, "category": "rag", "turns": ["Where is the ship?"]}
LINES
}
# answers FILE: the ids and the texts of answers, without times
answers() { grep -oE '"question_id": [^,]*|"turns": \[[^]]*\]' "$1"; }

it_runs_spec_bench() {
  make_spec
  succeeds "${spec[@]}" --data spec --policies rate,suffix
  grep -qE '^mt_bench +ar +3 +[0-9.]+ +1\.000 +1\.000x$' stdout || fail 'no row of MT-Bench'
  grep -qE '^overall +suffix +4 ' stdout || fail 'no row of all'
  grep -qx spec_bench/run_1 stdout && grep -qx spec_bench/report.html stdout || fail 'no paths'
  local arm
  for arm in ar rate suffix; do
    [ "$(wc -l <spec_bench/run_1/mini-target-$arm.jsonl)" -eq 4 ] || fail "$arm: not four lines"
    answers spec_bench/run_1/mini-target-$arm.jsonl >"$arm"
    same_text ar "$arm"
  done
  grep -qx '"question_id": 111' ar || fail 'no question 111'
  grep -q 'target pass commits' spec_bench/report.md || fail 'no table in the report'
}
it_runs_speed_bench_and_files_by_length() {
  mkdir speed
  echo '{"question_id": "a0", "category": "coding", "messages": [{"role": "user", "content": "A loop?"}], "source": "x"}' >speed/qualitative.jsonl
  echo '{"question_id": "b0", "category": "low_entropy", "sub_category": "x", "turns": ["Say a a a a."]}' >speed/throughput_1k.jsonl
  local speed=("${spec[@]/spec_bench/speed_bench}")
  succeeds "${speed[@]}" --data speed
  grep -qE '^coding +rate +1 ' stdout || fail 'no row of coding'
  grep -q '"question_id": "a0"' speed_bench/run_1/mini-target-rate.jsonl || fail 'no answer to a0'
  grep -q '"acceptance_lengths": \[' speed_bench/run_1/mini-target-rate.jsonl || fail 'no acceptance_lengths'
  succeeds "${speed[@]}" --data speed/throughput_1k.jsonl --out 1k.jsonl
  grep -qE '^low_entropy +rate +1 ' stdout || fail 'no row of low_entropy'
}
it_takes_some_of_each_category() {
  make_spec
  succeeds run paper spec_bench -t 1 --template chatml --quick --data spec
  answers spec_bench-quick/run_1/mini-target-ar.jsonl | grep question_id >ids
  printf '"question_id": %d\n' 81 111 481 >expected
  same_text expected ids
  grep -q '"new_tokens": \[8, 8\]' spec_bench-quick/run_1/mini-target-ar.jsonl || fail 'not 8 tokens'
}
# stops PATTERN ARGUMENTS...: dtrun ends with status 2; the last line says why
stops() {
  run "$dtrun" "${@:2}"
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  tail -n 1 stderr | grep -qE "^dtrun: $1" || fail "expected a last line that matches '$1'"
}
it_goes_on_where_it_was_stopped() {
  make_spec
  succeeds "${spec[@]}" --data spec --out x.jsonl
  cp x/run_1/mini-target-rate.jsonl whole
  head -n 4 x.jsonl >part
  cp part x.jsonl
  succeeds "${spec[@]}" --data spec --out x.jsonl
  head -n 4 x.jsonl | cmp -s - part || fail 'finished conversations were changed'
  answers whole >first
  answers x/run_1/mini-target-rate.jsonl >second
  same_text first second
  stops 'x.jsonl: made with temp = 0, not 1: give the same options' "${spec[@]}" --data spec --out x.jsonl --temp 1
  sed -i 's/"category": "math"/"category": "stem"/' spec/question.jsonl
  stops 'x.jsonl: made with texts = ' "${spec[@]}" --data spec --out x.jsonl
  echo 'no line' >>x.jsonl
  stops 'x.jsonl:[0-9]+: not a line of an experiment' "${spec[@]}" --data spec --out x.jsonl
  cp whole theirs.jsonl
  stops 'theirs.jsonl:1: not a line of an experiment' "${spec[@]}" --data spec --out theirs.jsonl
}
it_samples() {
  make_spec
  succeeds "${spec[@]}" --data spec --temp 1 --seed 5 --out warm.jsonl
  succeeds "${spec[@]}" --data spec --temp 1 --seed 6 --prompts 2 --out seed6.jsonl
  answers warm/run_1/mini-target-ar.jsonl >plain
  answers warm/run_1/mini-target-rate.jsonl >rate
  same_text plain rate
  answers seed6/run_1/mini-target-ar.jsonl >texts6
  ! cmp -s plain texts6 || fail 'another seed gives the same texts'
}
it_leaves_out_questions_that_do_not_fit() {
  make_spec
  printf '{"question_id": 482, "category": "rag", "turns": ["%s"]}\n' "$(printf 'word %.0s' {1..200})" >>spec/question.jsonl
  succeeds "${spec[@]}" --data spec -c 150
  grep -q '1 of 5 questions do not fit in the context of 150 tokens and are left out: rag/482' stderr || fail 'no message'
  grep -q 'are left out: rag/482' spec_bench.jsonl || fail 'no note in the file'
  [ "$(wc -l <spec_bench/run_1/mini-target-ar.jsonl)" -eq 4 ] || fail 'not four answers'
  refuses 2 'none of the questions fits in the context of 10 tokens' "${spec[@]}" --data spec -c 10 --out y.jsonl
}
it_refuses_what_it_cannot_run() {
  make_spec
  refuses 2 'paper spec_bench: --data FOLDER is missing: the folder with question.jsonl' run paper spec_bench
  refuses 2 'paper tasks: --temp is only for spec_bench and speed_bench' run paper tasks --temp 1
  refuses 2 '--data nowhere: expected a folder with qualitative.jsonl, or such a file' run paper speed_bench --data nowhere
  refuses 2 'mini-target has no chat template: give --template NAME' run paper spec_bench --data spec
  refuses 2 "no policy 'mian'; installed: ar, " "${spec[@]}" --data spec --policies mian
  echo '{"question_id": 1, "category": "poetry", "turns": ["x"]}' >>spec/question.jsonl
  refuses 2 'spec/question.jsonl:5: "category" is "poetry", expected one of coding, ' "${spec[@]}" --data spec
  [ ! -e spec_bench.jsonl ] || fail 'a file of results was begun'
}

run_tests
