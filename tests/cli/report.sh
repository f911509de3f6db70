#!/usr/bin/env bash
# `dtrun run report`: which files it writes, and what it says if it cannot.
. "$(dirname "$0")/helpers.sh"
sample=$source_dir/tests/data/experiments/sample.jsonl

# Makes a folder with every command that report runs, except gnuplot.
without_gnuplot() {
  mkdir bin
  for command in sh mkdir; do ln -s "$(command -v "$command")" bin; done
}

it_writes_tables_figures_and_one_page_that_needs_no_other_file() {
  command -v gnuplot >/dev/null || { echo '  skipped: no gnuplot'; return 0; }
  cp "$sample" sample.jsonl
  succeeds run report sample.jsonl
  grep -qx 'sample/report.html' stdout || fail 'the page is not named'
  [ -s stderr ] && fail 'something on standard error'
  grep -q '^| dynatree D0=3 ' sample/report.md || fail 'no table'
  grep -q '^dynatree D0=3 & ' sample/report.tex || fail 'no table for LaTeX'
  grep -qE '^"sample","novels","dynatree D0=3",speedup,3,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+$' sample/report.csv || fail 'no numbers'
  grep -q '!\[Speedup\](sample-speedup.svg)' sample/report.md || fail 'no figure in the Markdown'
  for name in speedup speed depth time; do
    [ -s "sample/sample-$name.svg" ] && [ -s "sample/sample-$name.png" ] || fail "no figure sample-$name"
  done
  [ "$(grep -c '<svg' sample/report.html)" -eq 8 ] || fail 'not every figure is in the page, for wide and for narrow screens'
  compgen -G 'sample/*narrow*' >/dev/null && fail 'a file of the page is left'
  grep -oE '(src|href)="[^"]{5}' sample/report.html | grep -vqE '"(#|data:)' && fail 'the page needs another file'
  return 0
}
it_draws_names_that_mean_something_to_gnuplot_and_writes_none_that_do_to_others() {
  command -v gnuplot >/dev/null || { echo '  skipped: no gnuplot'; return 0; }
  sed "s|linear K=4|'it''s <script>alert(1)</script> {x} \`id\`|; s|\"dynatree D0=3|\"=dynatree \\\\u001b[31m D0=3|; s|\"set\": \"novels|\"set\": \"@novels \\\\u0000|" "$sample" >h.jsonl
  succeeds run report h.jsonl
  for name in speedup speed depth time; do
    grep -q "'it''s &lt;script>alert(1)&lt;/script> {x} \`id\`</text>" h/h-$name.svg || fail "h-$name does not show the name"
  done
  grep -q '<script' h/report.md h/report.html && fail 'a script'
  grep -qF "| 'it''s &lt;script&gt;alert(1)&lt;/script&gt; {x} \\\`id\\\` |" h/report.md || fail 'no row in the Markdown'
  grep -qE "^\"sample\",\"'@novels  \",\"'=dynatree  .31m D0=3\",speedup,3,[0-9.]+," h/report.csv || fail 'no numbers'
  LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f]' h/*.svg h/report.* && fail 'a control character'
  return 0
}
it_makes_the_tables_where_there_is_no_gnuplot() {
  without_gnuplot
  PATH=$PWD/bin succeeds run report "$sample" --out here
  says_in_one_line 'the figures were not drawn: gnuplot is not installed \(Debian: apt-get install gnuplot-nox\)' run report
  grep -q '^| dynatree D0=3 ' here/report.md || fail 'no table'
  grep -q '!\[' here/report.md && fail 'a figure that is not there'
  grep -q '<td>dynatree D0=3</td>' here/report.html || fail 'no table in the page'
}
it_says_which_line_is_malformed() {
  { head -n 3 "$sample"; echo '{"schema": "dtrun.run/1", "arm": 3}'; } >bad.jsonl
  refuses 2 'bad.jsonl:4: not a line of an experiment: arm is not a string' run report bad.jsonl
  [ ! -e bad ] || fail 'something was written'
}
it_refuses_runs_that_two_programs_have_written() {
  { head -n 4 "$sample"; sed -n 3p "$sample"; } >doubled.jsonl
  refuses 2 'doubled.jsonl:5: repeats the run of line 3 \(.*\): two programs have written this file; delete one' run report doubled.jsonl
}
it_says_what_a_file_holds_in_one_line() {
  sed '3s/"arm": "[^"]*"/"arm": "a\\nb\\u001b[31m"/; 4s/.*/&/' "$sample" | sed -n '1,3p;3p' >lines.jsonl
  refuses 2 'lines.jsonl:4: repeats the run of line 3 \(a\?b\?\[31m, ' run report lines.jsonl
}
it_says_where_there_is_nothing_to_report() {
  head -n 1 "$sample" >started.jsonl
  : >empty.jsonl
  refuses 2 'started.jsonl: the experiment has no runs yet' run report started.jsonl
  refuses 2 'empty.jsonl: the file is empty' run report empty.jsonl
  refuses 2 'missing.jsonl: No such file' run report missing.jsonl
  refuses 2 'report: no file' run report
}
it_takes_no_options_of_models() {
  for driver in report trace; do
    succeeds run $driver --help
    grep -qE -- '--(target|threads|ctx)' stdout && fail "$driver: an option that it has no use for"
    grep -q -- '--out' stdout || fail "$driver: no --out"
    refuses 2 'unknown option --threads' run $driver --threads 2 x.jsonl
  done
}
it_says_that_the_disk_is_full() {
  [ -e /dev/full ] || { echo '  skipped: no /dev/full'; return 0; }
  for name in figures.gp report.md report.html report.tex report.csv; do
    mkdir -p full
    ln -s /dev/full "full/$name"
    refuses 1 "full/$name: No space left on device" run report "$sample" --out full
    rm -rf full
  done
  touch taken
  refuses 1 "taken" run report "$sample" --out taken
}

run_tests
