#!/usr/bin/env bash
# The limits of the process (ulimit): what they stop is reported in one line, with exit status 1.
. "$(dirname "$0")/helpers.sh"
novel=$source_dir/scripts/prompts/novels/01.txt

# under LIMIT... -- ARGUMENTS: runs dtrun under ulimit LIMIT
under() {
  local limit=()
  while [ "$1" != -- ]; do limit+=("$1") && shift; done
  shift
  (ulimit "${limit[@]}" && exec "$dtrun" "$@")
}

it_says_that_the_stack_is_too_small() {
  for kib in 64 1023; do
    run under -s $kib -- dynatree --text hello -n 4
    [ "$status" -eq 1 ] || fail "$kib KiB: exit status $status, expected 1"
    says_in_one_line "the stack is limited to $kib KiB, at least 1024 are needed"
  done
}
it_runs_with_the_least_stack_whatever_the_input() {
  run under -s 1024 -- dynatree --prompt "$novel" -n 40
  [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
  deep=$(printf '[%.0s' $(seq 900))
  for line in "$deep" "{\"prompt\": \"hello\", \"more\": $deep${deep//[/]}}"; do
    echo "$line" >deep.jsonl
    run under -s 1024 -- ar --prompts deep.jsonl -n 4
    [ "$status" -le 2 ] || fail "exit status $status, expected 0 or 2"
  done
  cat >recursive.lua <<'LUA'
local function deep(text) return (text:gsub(".", deep)) end
local ok, message = pcall(deep, "x")
assert(not ok and message:find "C stack overflow", message)
LUA
  run under -s 1024 -- run ./recursive.lua
  [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
}
it_says_that_a_file_may_grow_no_further() {
  unset HOME XDG_CACHE_HOME # the file of learned costs may exceed that limit too, depending on the speed of the machine
  for option in --json --trace; do
    run under -f 1 -- linear --prompt "$novel" -n 60 -q $option out
    [ "$status" -eq 1 ] || fail "$option: exit status $status, expected 1"
    says_in_one_line 'out: File too large' "$option"
  done
  run under -f 1 -- ar --prompt "$novel" -n 600 --ignore-eos -q
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  says_in_one_line 'standard output: File too large'
}
# An input that needs too much is refused with one line, soon, and without much memory.
it_refuses_grammars_that_ask_for_too_much() {
  local memory=(-v 262144)
  grep -q __asan_init "$dtrun" && memory=(-c 0) # the sanitizer maps terabytes
  many() { yes "$2" | head -n "$1" | tr -d '\n'; } # many N TEXT
  tells() { # tells MESSAGE OPTION FILE: gives the option the file's text or its name, and expects the message
    run timeout 60 bash -c 'ulimit "$@"' - "${memory[@]}" # checks that the limit can be set
    [ "$status" -eq 0 ] || fail "no limit ${memory[*]}"
    run under "${memory[@]}" -s 1024 -- ar -p hello -n 4 -q "$2" "$3"
    [ "$status" -eq 2 ] || fail "$2 of ${#3} bytes: exit status $status, expected 2"
    says_in_one_line "$1" "$2"
  }
  nested() { many "$1" '{"items":' && printf true && many "$1" '}'; }
  nested 401 >deep.json && tells 'more than 400 nested schemas' --json-schema-file deep.json
  nested 1001 >deep.json && tells 'brackets are nested too deeply' --json-schema-file deep.json
  { printf '{"enum":[' && many 10000 '1,' && printf '1]}'; } >values.json && tells 'enum: more than 10000 values' --json-schema-file values.json
  { printf '{"enum":[' && many 500000 '1,' && printf '1]}'; } >values.json && tells 'enum: more than 10000 values' --json-schema-file values.json
  { printf '{"enum":[' && many 1000000 '1,' && printf '1]}'; } >values.json && tells 'more than the maximum of 1048576' --json-schema-file values.json
  { printf '{"anyOf":[' && many 7500 '{"const":1},' && printf '{}]}'; } >choices.json && tells 'more than 48 MiB' --json-schema-file choices.json
  { printf '{"properties":{"' && many 90000 x && printf '":{}},"additionalProperties":{}}'; } >name.json && tells 'more than 20000 states' --json-schema-file name.json
  { printf '{"minimum":' && many 400 9 && printf '}'; } >digits.json && tells 'more than 40 digits' --json-schema-file digits.json
  { printf '{"pattern":"' && many 99000 '(' && printf '"}'; } >groups.json && tells 'more than 200 nested parentheses' --json-schema-file groups.json
  { printf 'root ::= "a"' && many 1000000 '|"b"'; } >choices.gbnf && tells 'more than the maximum of 1048576' --grammar-file choices.gbnf
  { printf 'root ::= ' && many 49000 '('; } >open.gbnf && tells 'more than 256 nested parentheses' --grammar-file open.gbnf
  tells 'more than 262144 repetitions' --regex 'a{1000000}'
  tells 'more than 262144 parts' --regex '(a{200000}){100000}'
  tells 'more than 200 nested parentheses' --regex "$(many 100000 '(')"
  tells '100001 bytes, the maximum is 100000' --regex "$(many 100001 a)"
  tells 'more than 262144 parts' --regex "$(many 33000 'a|b')"
  tells 'there is nothing before this' --regex "$(many 50000 '*')"
  run under "${memory[@]}" -s 1024 -- ar -p hello -n 4 -q --regex '((a{0,1000}){0,1000}){0,1000}' # it can be read, but has too many states
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  says_in_one_line 'more than 4096 ways'
}

run_tests
