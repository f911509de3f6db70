#!/usr/bin/env bash
# tests/bench/again.sh: figures that agree, that differ, and that a machine cannot measure; tables with mistakes.
. "$(dirname "$0")/helpers.sh"
export DTRUN=$dtrun
again() {
  export MODELS=$PWD/none LLAMA_BENCH=$PWD/none
  run "$source_dir/tests/bench/again.sh" --table t.txt "$@"
}

# row NAME STORED WITHIN RUN [KEY: TEXT]...: adds a row to t.txt
row() {
  printf '%s\n' "name: $1" "what: a figure" "stored: $2" 'on: EPYC' 'page: models.md' "within: $3" 'seconds: 1' "run: $4" "${@:5}" '' >>t.txt
}
# prints PATTERN: a line of the output matches it
prints() { grep -qE -- "$1" stdout || fail "no line matches '$1' in: $(<stdout)"; }
ends_with() { [ "$status" -eq "$1" ] || fail "exit status $status, expected $1: $(<stdout)"; }

it_compares_figures_that_agree() {
  echo '# a comment' >t.txt
  row ratio 2.00 '10 %' 'printf "rate 1.9\nratio: 1.85x\n"'
  row second 1.9 '1 %' 'as ratio' 'take: /^rate/ { print $2 }'
  row hash e7bd74a0 exact 'echo e7bd74a0'
  row speed 400 shown 'echo 100'
  again
  ends_with 0
  prints '^ratio +2.00 +1.85 +0.93  agrees \(10 %; stored: EPYC\)$'
  prints '^second +1.9 +1.9 +1.00  agrees '
  prints '^hash +e7bd74a0 +e7bd74a0 +-  agrees \(exact'
  prints '^speed +400 +100 +0.25  shown only'
  prints '^3 of 3 agree; shown only: 1; not run: 0$'
}
it_runs_a_command_once_for_all_its_rows() {
  row first 1 exact 'echo ran >>"$MODELS.log"; echo 1 2' 'take: { print $1 }'
  row other 2 exact 'as first' 'take: { print $2 }'
  again
  ends_with 0
  [ "$(wc -l <none.log)" -eq 1 ] || fail "it ran $(wc -l <none.log) times"
}
it_reports_what_differs_and_what_fails() {
  row off 2.00 '10 %' 'echo 1.75'
  row hash abc exact 'echo abd'
  row broken 1 exact 'echo no such model >&2; exit 3'
  row silent 1 '5 %' 'echo 5 apples'
  row lost 1 '5 %' 'echo 1' 'take: /banana/ { print $1 }'
  again
  ends_with 1
  prints '^off .* 0.88  DIFFERS \(10 %'
  prints '^hash +abc +abd +-  DIFFERS'
  prints '^broken .*FAILED: exit status 3: no such model$'
  prints '^silent .*FAILED: apples$'
  prints '^lost .*FAILED: the figure is not in its output$'
  prints '^0 of 5 agree; '
}
it_leaves_out_what_a_machine_cannot_measure() {
  row peer 2.00 '10 %' 'echo 2' 'needs: llama-bench'
  row pair 2.00 '10 %' 'echo 2' 'needs: qwen quiet'
  row wide 1 exact 'echo 1' 'needs: avx512'
  row narrow 1 exact 'echo 1' 'needs: avx2'
  again
  ends_with 0
  prints "^peer +2.00 .*not run: no $PWD/none: give LLAMA_BENCH=PATH$"
  prints '^pair +2.00 .*not run: no qwen2.5-coder-1.5b-instruct-q4_k_m.gguf: give MODELS=FOLDER$'
  [ "$(grep -cE '^(wide|narrow) .* agrees' stdout)" -le 1 ] || fail 'two kinds of machine at once'
}
it_waits_for_no_busy_machine() {
  row timed 1 exact 'echo 1' 'needs: quiet'
  again
  ends_with 0
  prints '^timed .*(agrees|not (run|counted): the machine is busy \([0-9]+ %\))'
}
it_does_not_count_what_became_slow() {
  row exact 1 exact 'for i in $(seq $(nproc)); do timeout 2 sh -c "while :; do :; done" >/dev/null 2>&1 & done; echo 1'
  row timed 5 '10 %' 'as exact' 'needs: quiet'
  again
  prints '^exact .*agrees'
  prints '^timed .*not (run|counted): the machine is busy'
  ends_with 0
}
it_runs_some() {
  row short 1 exact 'echo 1'
  row long 1 exact 'echo 2'
  sed -i "/^name: long/,\$ s/^seconds: 1$/seconds: 60/" t.txt
  again --quick
  ends_with 0
  prints '^1 of 1 agree; .*; longer than a minute: 1$'
  again long
  ends_with 1
  ! grep -q '^short' stdout || fail 'another figure was measured'
  again --list
  ends_with 0
  prints '^long +1 +exact +60 s  a figure \(EPYC; models.md\)$'
}
# is_mistake PATTERN [ARGUMENTS...]: again.sh ends with status 2, prints nothing and says why in one line
is_mistake() {
  again "${@:2}"
  ends_with 2
  [ ! -s stdout ] || fail 'something on standard output'
  [ "$(wc -l <stderr)" -eq 1 ] && grep -qE "^again.sh: $1" stderr || fail "expected one line that matches '$1'"
}
it_refuses_tables_with_mistakes() {
  row good 1 exact 'echo 1'
  cp t.txt good
  is_mistake "no figure 'bad'; known: good" bad
  is_mistake 'unknown option --fast' --fast
  local t=".*/t.txt"
  echo 'a line' >>t.txt
  is_mistake "$t:10: expected KEY: TEXT"
  { cat good; echo 'colour: red'; } >t.txt
  is_mistake "$t:10: unknown key 'colour'; known: name what "
  { cat good; echo 'what: red'; } >t.txt
  is_mistake "$t:10: a row begins with name:"
  { cat good good; } >t.txt
  is_mistake "$t:10: a second row is called good"
  grep -v '^$' good | cat - good >t.txt
  is_mistake "$t:9: good is not finished: an empty line is missing"
  grep -v '^run' good >t.txt
  is_mistake "$t:8: good has no run"
  sed 's/^within.*/within: nearly/' good >t.txt
  is_mistake "$t:9: good: within 'nearly': expected exact, shown or a number of percent"
  sed 's/^within.*/within: 5 %/; s/^stored.*/stored: fast/' good >t.txt
  is_mistake "$t:9: good: stored 'fast': expected a number"
  sed 's/^run/needs: luck\nrun/' good >t.txt
  is_mistake "$t:10: good needs 'luck'; known: smollm2 "
  sed 's/^run.*/run: as bad/' good >t.txt
  is_mistake "$t:9: good: run as 'bad': expected the name of an earlier row"
  : >t.txt
  is_mistake "$t: no rows"
}
# Each row of the real table names a page of results, or a file, that has its figure.
it_has_its_figures_from_the_pages() {
  run "$source_dir/tests/bench/again.sh" --list
  ends_with 0
  [ "$(wc -l <stdout)" -ge 10 ] || fail "$(wc -l <stdout) figures"
  local results=$source_dir/tests/bench/results page figure
  while read -r figure page; do
    grep -qF -- "$figure" "$results/$page" || fail "$page does not have $figure"
  done < <(awk '/^stored:/ { s = $2 } /^page:/ { print s, $2 }' "$results/again.txt")
}

run_tests
