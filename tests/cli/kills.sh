#!/usr/bin/env bash
# kills.sh DTRUN SOURCE [KILLS]: an experiment that is killed (kill -9) KILLS times at random moments, and continued each time, leaves the
# same file as one that was not killed, except for times.
. "$(dirname "$0")/helpers.sh"
kills=${3:-3}
novel=$source_dir/scripts/prompts/novels/01.txt

untimed() { "$dtrun" run "$source_dir/tests/cli/untimed.lua" "$1"; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# survives NAME KILLS ARGUMENTS...: for a program that writes --out FILE
survives() {
  local name=$1 n=$2 start length kill pid early=0
  shift 2
  start=$(milliseconds)
  succeeds "$@" --out whole.jsonl
  length=$(($(milliseconds) - start))
  untimed whole.jsonl >expected || fail "$name: a file that cannot be read"
  # More kills if all of them came before the first run or after the last one, which is likely if the first start was slow.
  for ((kill = 0; kill < n || (early == 0 && kill < 20 * n); kill++)); do
    rm -f killed.jsonl
    "$dtrun" "$@" --out killed.jsonl >/dev/null 2>&1 &
    pid=$!
    sleep "$(printf '%d.%03d' $((RANDOM * length / 32768 / 1000)) $((RANDOM * length / 32768 % 1000)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ -e killed.jsonl ] && [ "$(wc -l <killed.jsonl)" -eq "$(wc -l <whole.jsonl)" ] || early=$((early + 1))
    succeeds "$@" --out killed.jsonl
    untimed killed.jsonl >found || fail "$name: a file that cannot be read after kill $kill"
    same_text expected found
  done
  [ $early -gt 0 ] || [ "$n" -eq 0 ] || fail "$name: no kill came in time"
  printf '{"schema": "dtrun.run/1", "arm": "fixed_tr' >>killed.jsonl # as if the last kill had come in the middle of a line
  succeeds "$@" --out killed.jsonl
  untimed killed.jsonl >found
  same_text expected found
}

it_goes_on_with_a_sweep() {
  survives sweep "$kills" run sweep linear fixed_tree --set K=1..8 D=1..8 tau=0.1,0.2,0.5 --prompt "$novel" --chars 80 -n 12 -t 1 --repeats 1
  grep -q 'the others follow' stderr && fail 'runs are announced although all are there'
  head -n 4 killed.jsonl >some.jsonl # the head and three runs
  succeeds run sweep linear fixed_tree --set K=1..8 D=1..8 tau=0.1,0.2,0.5 --prompt "$novel" --chars 80 -n 12 -t 1 --repeats 1 --out some.jsonl
  grep -qE '^dtrun: some.jsonl has 3 of the [0-9]+ runs; the others follow$' stderr || fail 'the number of finished runs is not reported'
}
it_goes_on_with_a_paper() { survives ablation "$kills" run paper ablation --quick; }
it_goes_on_with_traced_runs() { survives cast_figures $((kills / 3)) run paper cast_figures --quick; }
it_goes_on_with_batches() { survives batch_tasks $((kills / 3)) run paper batch_tasks --quick; }

run_tests
