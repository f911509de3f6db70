#!/usr/bin/env bash
# `dtrun run trace`: the page it writes, and what it says about bad input. tests/browser/trace.sh tests what the page does.
. "$(dirname "$0")/helpers.sh"

write_trace() { succeeds dynatree --text 'It was a dark night, and' -n 20 --ignore-eos --trace t.jsonl; }

it_writes_one_page_that_needs_no_other_file() {
  write_trace
  succeeds run trace t.jsonl
  same_text stdout <(echo t.html)
  grep -qE '(src|href)=' t.html && fail 'the page loads something'
  [ "$(grep -o '\\u003csvg' t.html | wc -l)" -eq "$(grep -c '"iteration"' t.jsonl)" ] || fail 'not one drawing per iteration'
  succeeds run trace t.jsonl --out other.html
  same_text t.html other.html
}
it_draws_tokens_that_are_no_words() {
  # quotes, brackets, entities, line breaks and parts of characters, as tokens and in the text
  printf '"<b>&amp;</b>\\"\n\t</script> “é” \\n \\l [x] {y} | “é”\n\t</script>' >prompt
  succeeds prompt_lookup --prompt prompt -n 12 --ignore-eos --trace t.jsonl
  succeeds run trace t.jsonl
  [ "$(grep -c '</script>' t.html)" -eq 2 ] || fail 'the text ends a script'
}
it_leaves_out_lines_that_are_damaged_and_says_which() {
  write_trace
  sed -i '3s/.*/{"iteration":2,"nodes":[{"id":/' t.jsonl
  run "$dtrun" run trace t.jsonl
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  says_in_one_line "t.jsonl: 1 of $(wc -l <t.jsonl) lines left out, line 3: "
  [ "$(grep -o '\\u003csvg' t.html | wc -l)" -eq "$(grep -c '"bonus"' t.jsonl)" ] || fail 'the other trees are not there'
  write_trace
  truncate -s -300 t.jsonl # as after a run that was killed or met a full disk
  run "$dtrun" run trace t.jsonl
  [ "$status" -eq 2 ] || fail "torn: exit status $status, expected 2"
  says_in_one_line 't.jsonl: 1 of [0-9]+ lines left out, line [0-9]+: '
  for damage in 's/"id":0,/"id":0,"parent":0,/' 's/"id":1,/"id":7,/' 's/"parent":0/"parent":9/' 's/"bonus":{"token"/"bonus":{"x"/' 's/"verify":/"v":/' \
    's/"origin"/"o"/' 's/"nodes":\[/"nodes":[5,/' 's/.*/[1]/' 's/.*/7/'; do
    write_trace
    sed -i "2$damage" t.jsonl
    run "$dtrun" run trace t.jsonl
    [ "$status" -eq 2 ] || fail "$damage: exit status $status, expected 2"
    says_in_one_line 'lines left out, line 2: '
  done
}
it_refuses_what_is_no_trace() {
  refuses 2 'nowhere.jsonl: No such file' run trace nowhere.jsonl
  refuses 2 'expected one file' run trace
  refuses 2 'expected one file' run trace a b
  for text in '' '{}' '{"schema":"dtrun.runs/1"}' 'hello' '{"schema":"dtrun.trace/1"}'; do
    printf '%s' "$text" >bad.jsonl
    refuses 2 'bad.jsonl: not a trace: its first line is not one of schema dtrun.trace/1' run trace bad.jsonl
  done
  write_trace
  head -1 t.jsonl >bad.jsonl
  refuses 2 'bad.jsonl: no complete iteration' run trace bad.jsonl
}
it_draws_the_same_trees_without_graphviz() {
  succeeds eagle2 --set top_k=5 --set total=20 --text 'It was a dark night, and' -n 30 --ignore-eos --trace t.jsonl
  succeeds run trace t.jsonl
  run env PATH=/nowhere "$dtrun" run trace t.jsonl --out plain.html
  [ "$status" -eq 0 ] && [ ! -s stderr ] || fail "exit status $status"
  for page in t plain; do grep -oE "<?(\\\\u003c)?(title>[^\\\\]*|tspan> [.0-9]*|path class='[a-z]*)" $page.html >$page.drawn; done
  [ "$(wc -l <plain.drawn)" -gt 100 ] || fail 'too little is drawn'
  same_text t.drawn plain.drawn
}
it_says_where_the_disk_is_full() {
  write_trace
  refuses 1 '/dev/full: No space left on device' run trace t.jsonl --out /dev/full
  refuses 1 'nowhere/t.html: No such file' run trace t.jsonl --out nowhere/t.html
}

run_tests
