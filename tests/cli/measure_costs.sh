#!/usr/bin/env bash
# Measured tables of costs: separate for each pair, printed and plotted.
. "$(dirname "$0")/helpers.sh"
export XDG_CACHE_HOME=

learn_run() { succeeds cast --text 'The ship' -n 8 -c 60 -t 1 "$@"; }
cost_run() { learn_run --costs table "$@"; }

it_keeps_the_tables_of_rounded_weights_apart() {
  export HOME=$PWD
  cost_run
  cost_run --weights q4
  cost_run --draft-weights q4
  cost_run --draft-vocab 600
  [ "$(find .cache -name 'costs-*.json' | wc -l)" -eq 4 ] || fail 'not four tables'
  grep -lq ' in q4, draft ' .cache/dtrun/costs-*.json || fail 'no table says that the target is in q4'
}
it_prints_a_table_and_plots_it() {
  export XDG_CACHE_HOME=$PWD
  succeeds run costs -c 60 -t 1 --json table.json
  grep -qE '^  rows +target@[0-9]+ +draft@[0-9]+$' stdout || fail 'no table'
  grep -qE '^first draft pass of an iteration: [0-9.]+@[0-9]+$' stdout || fail 'no first pass'
  grep -qE "^sampling, per row: [0-9.]+, of a coupled draft [0-9.]+$" stdout || fail 'no costs of sampling'
  grep -qE '^     1 #+ 1\.00$' stdout || fail 'no plot'
  grep -q '"contexts"' table.json || fail 'no JSON'
  succeeds run costs -c 60 -t 1 --batch 3
  grep -q '^milliseconds per pass over 3 sequences, by rows per sequence, ' stdout || fail 'no table of a batch'
  refuses_to_plot 2 'must end in .svg or .png' "$PATH" costs.gif
  mkdir bin && ln -s "$(command -v sh)" bin/sh
  refuses_to_plot 1 'gnuplot is not installed \(Debian: apt-get install gnuplot-nox\)' "$PWD/bin" costs.svg
  command -v gnuplot >/dev/null || return 0
  succeeds run costs -c 60 -t 1 --plot costs.svg
  grep -q '<svg' costs.svg || fail 'no picture'
  local name="|touch 'x' \$HOME "'"@"''.svg' # a file name that gnuplot must not interpret
  succeeds run costs -c 60 -t 1 --plot "$name"
  grep -q '<svg' "$name" || fail "no picture $name"
  refuses_to_plot 1 "nowhere/x.svg" "$PATH" nowhere/x.svg
}
# refuses_to_plot STATUS PATTERN PATH FILE
refuses_to_plot() {
  run env PATH="$3" "$dtrun" run costs -c 60 -t 1 --plot "$4"
  [ "$status" -eq "$1" ] || fail "--plot $4: exit status $status, expected $1"
  says_in_one_line "$2" --plot "$4"
}

run_tests
