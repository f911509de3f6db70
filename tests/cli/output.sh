#!/usr/bin/env bash
# What a run prints, where it prints it, and which files it leaves.
. "$(dirname "$0")/helpers.sh"

prompt=$models/prompt.txt
check_result() { "$dtrun" run "$source_dir/tests/cli/result.lua" "$@" || fail "result.lua $*"; }

# slow TOKENS: writes a policy named slow, which takes some milliseconds per iteration, each of which gives one token
write_slow_policy() {
  cat >slow.lua <<'LUA'
local policy = require "dt.policy"
local Slow = policy.define { name = "slow", doc = "waits", uses = { draft = false } }
function Slow:draft() for _ = 1, 1000000 do end end
return Slow
LUA
}

it_writes_a_trace_beside_the_text() {
  succeeds dynatree --prompt "$prompt" -n 30
  mv stdout plain
  succeeds dynatree --prompt "$prompt" -n 30 --trace t.jsonl --compare ar
  same_text plain stdout
  head -1 t.jsonl | grep -q '^{"schema":"dtrun.trace/1",.*"policy":"dynatree"' || fail 'the first line'
  tail -1 t.jsonl | grep -q '^{"finish_reason":"length","tokens":30,' || fail 'the last line'
}
it_prints_the_text_and_complains_when_a_trace_cannot_be_written() {
  succeeds linear --text hello -n 200 --ignore-eos
  mv stdout plain
  run "$dtrun" linear --text hello -n 200 --ignore-eos -q --trace /dev/full --json r.json
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  same_text plain stdout
  says_in_one_line 'trace /dev/full: No space left on device: it ends after about [0-9]+ iterations'
  check_result r.json tokens=200 finish_reason=length
  refuses 2 'trace nowhere/t.jsonl: No such file' linear --text hello -n 5 --trace nowhere/t.jsonl
  refuses 2 'trace : expected a file name' linear --text hello -n 5 --trace ''
}
it_begins_what_a_policy_prints_on_a_line_of_its_own() {
  printf 'local P = require("dt.policy").define { name = "says", uses = { draft = false } }
function P:observe(tree) print("at", tree.seq:length()) print "twice" end return P' >says.lua
  succeeds ar --text hello -n 6 -q
  mv stdout plain
  "$dtrun" ./says.lua --text hello -n 6 -q >together 2>&1
  grep -cx 'twice' together | grep -qx 6 || fail 'each of the second lines stands alone'
  grep -cE '^at' together | grep -qx 6 || fail 'the first of each begins a line'
  "$dtrun" ./says.lua --text hello -n 6 -q >stdout 2>stderr
  same_text plain stdout
  [ "$(wc -l <stderr)" -eq 12 ] || fail 'lines where the two do not meet'
}
it_writes_the_same_text_wherever_threads_and_memory_are_placed() {
  local mode
  succeeds ar --text hello -n 20 -q
  mv stdout plain
  for mode in distribute isolate off; do
    succeeds ar --text hello -n 20 -q --numa "$mode"
    same_text plain stdout
  done
  refuses 2 "numa: 'numactl' is not supported; supported: distribute or isolate or off" ar --text hello --numa numactl
}
it_warns_of_more_threads_than_processors_in_one_line() {
  if grep -q sched_getaffinity "$dtrun"; then # not in a build with POSIX alone
    run taskset -c 0 "$dtrun" ar --text hello -n 1 -t 2
    [ "$(grep -c 'only 1 processor may be used' stderr)" -eq 1 ] || fail 'one processor: no warning of two threads'
  fi
  run taskset -c 0 "$dtrun" ar --text hello -n 1 -t 1
  grep -q 'may be used' stderr && fail 'one processor: a warning of one thread'
  run "$dtrun" ar --text hello -n 1 -t 64
  [ "$status" -eq 0 ] && [ "$(grep -cE '^dtrun: --threads 64, but only [0-9]+ processors? may be used' stderr)" -eq 1 ] ||
    fail '64 threads: no warning'
  succeeds ar --text hello -n 1 -t 64 -q
  [ -s stderr ] && fail '64 threads, quiet: a warning'
  return 0
}
it_prints_the_text_and_nothing_else_on_standard_output() {
  succeeds dynatree --prompt "$prompt" -n 40 --json r.json
  check_result r.json tokens=40 policy=dynatree finish_reason=length
  "$dtrun" run "$source_dir/tests/cli/text.lua" r.json >text || fail 'text.lua'
  same_text text stdout
}
it_sums_up_in_one_line_on_standard_error() {
  succeeds dynatree --prompt "$prompt" -n 40
  [ "$(grep -cv '^dtrun: slower than plain decoding' stderr)" -eq 1 ] || fail 'expected one line'
  grep -qE '^dtrun: 40 tokens, [0-9.]+ tokens/s, [0-9.]+ per pass(, speedup [0-9.]+x \(estimated\))?$' stderr || fail 'summary'
}
it_says_why_little_was_drafted() {
  succeeds suffix -p 'The ship' -n 20 --set min_p=1
  grep -qE '^dtrun: (little|nothing) was drafted: (there is no draft model, and )?the text repeats itself too little to copy from it$' stderr || fail "$(<stderr)"
  succeeds ar -p 'The ship' -n 20
  [ "$(wc -l <stderr)" -eq 1 ] || fail 'plain decoding is explained'
}
it_sums_up_in_more_lines_when_asked() {
  succeeds dynatree --prompt "$prompt" -n 40 -v
  for word in mini-target mini-draft 'first token' 'output hash [0-9a-f]{16}' 'peak' '[0-9]+ % of [0-9]+ drafted accepted; time: prompt'; do
    grep -qE "^dtrun: .*$word" stderr || fail "no $word"
  done
}
it_begins_a_line_for_messages_where_both_outputs_meet() {
  "$dtrun" ar --text hello -n 5 >both 2>&1 || fail 'exit status'
  grep -q '^dtrun: 5 tokens' both || fail 'the summary does not begin a line'
  succeeds ar --text hello -n 5
  "$dtrun" ar --text hello -n 5 -q >both 2>&1 || fail 'exit status'
  same_text stdout both
}
it_says_nothing_when_quiet() {
  succeeds dynatree --prompt "$prompt" -n 10 -q -v --compare ar
  [ -s stderr ] && fail 'something on standard error'
  [ -s stdout ] || fail 'no text'
}
it_gives_the_same_text_under_every_installed_policy() {
  succeeds ar --prompt "$prompt" -n 100 --ignore-eos
  mv stdout expected
  for policy in "$source_dir"/policies/{,papers/}*.lua; do
    succeeds "$policy" --prompt "$prompt" -n 100 --ignore-eos
    same_text expected stdout
  done
}
it_samples_the_same_text_under_every_policy_for_one_seed() {
  local sampling=(--temp 1.2 --top-k 50 --top-p 0.9 --min-p 0.01 -s 18446744073709551615)
  succeeds ar --prompt "$prompt" -n 40 --ignore-eos "${sampling[@]}"
  mv stdout expected
  for policy in linear dynatree; do
    succeeds "$policy" --prompt "$prompt" -n 40 --ignore-eos "${sampling[@]}" --json r.json
    same_text expected stdout
    check_result r.json seed=18446744073709551615 sampling.temp=1.2 sampling.top_k=50 sampling.coupled=true
  done
  succeeds linear --prompt "$prompt" -n 40 --ignore-eos "${sampling[@]}" --uncoupled
  same_text expected stdout
  succeeds ar --prompt "$prompt" -n 40 --ignore-eos --temp 1.2
  cmp -s expected stdout && fail 'another seed gave the same text'
  succeeds linear --prompt "$prompt" -n 5 --json r.json
  check_result r.json seed=0 sampling=nil
}
it_colors_text_by_where_it_comes_from_and_changes_nothing_else() {
  succeeds linear --prompt "$prompt" -n 80 --stop '!!' -q
  mv stdout plain
  succeeds linear --prompt "$prompt" -n 80 --stop '!!' -q --color
  for color in 32 36 33; do grep -q $'\e'"\\[${color}m[^"$'\e'"]" stdout || fail "no text in color $color"; done
  sed $'s/\e\\[[0-9]*m//g' stdout >bare
  same_text plain bare
  succeeds ar --prompt "$prompt" -n 20 -q --color
  grep -q $'\e\\[32m' stdout && fail 'plain decoding drafts nothing'
  true
}
it_compares_with_another_policy_in_one_line() {
  succeeds dynatree --prompt "$prompt" -n 60 --compare ar --json r.json
  grep -qE '^dtrun: dynatree [0-9.]+ tokens/s, ar [0-9.]+ tokens/s, prompt included: [0-9.]+x, same 60 tokens, median of [0-9]+ rounds?$' stderr || fail 'comparison'
  check_result r.json compare.policy=ar compare.stats.drafted=0
  grep -oE '"output_hash":[[:space:]]*"[0-9a-f]+"' r.json | tr -d ' \t' | sort | uniq -c >hashes
  [ "$(wc -l <hashes)" -eq 1 ] && grep -q '^ *2 ' hashes || fail 'expected the same hash twice'
}

it_reads_the_prompt_from_a_file_standard_input_or_the_command_line() {
  succeeds ar --prompt "$prompt" -n 20
  mv stdout expected
  succeeds ar -f - -n 20 <"$prompt"
  same_text expected stdout
  succeeds ar -p "$(cat "$prompt")" --tokens=20
  same_text expected stdout
  cat "$prompt" | succeeds ar -n 20
  same_text expected stdout
}
it_runs_rate_where_no_policy_is_named_with_a_draft_or_without_and_says_so() {
  succeeds ar --prompt "$prompt" -n 20
  mv stdout expected
  succeeds -n 20 -t 1 --json r.json <"$prompt"
  same_text expected stdout
  grep -q '^dtrun: policy: rate, since none was named; dtrun --list names all$' stderr || fail 'not said'
  check_result r.json policy=rate
  succeeds -n 20 --prompt "$prompt" -m "$models/mini-target" --draft none --json r.json
  same_text expected stdout
  grep -q '^dtrun: policy: rate, since none was named; dtrun --list names all$' stderr || fail 'not said'
  check_result r.json policy=rate
  grep -q '"draft":[[:space:]]*null' r.json || fail 'a draft model, though none was wanted'
  succeeds -n 2 --prompt "$prompt" -m "$models/mini-target" --draft none -q
  [ -s stderr ] && fail 'said, though quiet'
  true
}
it_says_on_a_terminal_that_it_loads() {
  script -qec "$dtrun ar -p hello -n 2" typescript >/dev/null || fail 'script'
  grep -qF "dtrun: loading $models/mini-target ..." typescript || fail "no sign of life: $(cat typescript)"
  script -qec "$dtrun ar -p hello -n 2 -q" typescript >/dev/null || fail 'script'
  grep -q loading typescript && fail 'a sign of life, though quiet'
  succeeds ar -p hello -n 2
  grep -q loading stderr && fail 'a sign of life, though nobody looks'
  true
}
it_says_how_long_loading_took_and_counts_it_nowhere() {
  succeeds linear -p hello -n 20 --json r.json -v
  check_result r.json
  grep -qE '^dtrun: ms: load [0-9.]+, prompt ' stderr || fail 'not in the longer summary'
  grep -qE '"load_ms":[[:space:]]*0*[1-9.]' r.json || fail 'no load_ms'
}
it_takes_a_policy_by_name_or_path_and_options_before_it() {
  succeeds linear --text hello -n 20
  mv stdout expected
  succeeds --text hello -n 20 "$source_dir/policies/linear.lua"
  same_text expected stdout
  cp "$source_dir/policies/linear.lua" mine.lua
  succeeds -n 20 mine.lua --text hello
  same_text expected stdout
}
it_lets_the_last_of_two_options_win() {
  succeeds linear --text hello -n 20 -n 7 --set K=3 --set K=5 --json r.json
  check_result r.json tokens=7 params.K=5
}
it_applies_a_preset_and_settings_over_it() {
  succeeds dynatree --text hello -n 8 --preset as_published --set rebuild=false --json r.json
  check_result r.json params.root_branch=1 params.rebuild=false
}
it_generates_one_token() {
  succeeds dynatree --prompt "$prompt" -n 1 --json r.json
  check_result r.json tokens=1 finish_reason=length
}
it_generates_until_the_context_ends() {
  succeeds dynatree --text hello -n -1 --ctx 64 --ignore-eos --json r.json
  check_result r.json finish_reason=context
}
it_stops_before_a_stop_string() {
  succeeds ar --prompt "$prompt" -n 60 --ignore-eos
  stop=$(head -c 60 stdout | tail -c 6)
  whole=$(cat stdout)
  succeeds dynatree --prompt "$prompt" -n 60 --ignore-eos --stop 'never said by anyone' --stop "$stop" --json r.json
  [ "$(cat stdout; echo .)" = "${whole%%"$stop"*}." ] || fail "expected the text before '$stop'"
  check_result r.json finish_reason=stop
}

it_writes_the_result_to_standard_output_instead_of_the_text() {
  succeeds linear --text hello -n 12 --json -
  mv stdout r.json
  check_result r.json tokens=12 policy=linear
}
it_replaces_the_result_file_whole_and_keeps_its_permissions_and_links() {
  echo old >r.json
  chmod 640 r.json
  ln -s r.json link.json
  succeeds ar --text hello -n 3 --json link.json
  check_result r.json tokens=3
  [ -L link.json ] || fail 'the link is gone'
  [ "$(stat -c %a r.json)" = 640 ] || fail 'other permissions'
  [ "$(find . -name 'r.json.*' | wc -l)" -eq 0 ] || fail 'a temporary file is left'
  (umask 027 && succeeds ar --text hello -n 3 --json new.json)
  [ "$(stat -c %a new.json)" = 640 ] || fail 'umask'
}
it_writes_the_result_into_devices_and_pipes_as_they_are() {
  succeeds ar --text hello -n 3 --json /dev/null
  [ -c /dev/null ] || fail '/dev/null was replaced'
  mkfifo pipe
  cat pipe >r.json &
  succeeds ar --text hello -n 3 --json pipe
  wait $!
  check_result r.json tokens=3
}
it_tells_a_full_disk() {
  run "$dtrun" ar --text hello -n 3 -q --json /dev/full
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  says_in_one_line '/dev/full: No space left on device'
  for arguments in "ar --text hello -n 3" "ar --text hello -n 3 --json -" --help --list --version; do
    status=0
    # shellcheck disable=SC2086 # words
    "$dtrun" $arguments -q >/dev/full 2>stderr || status=$?
    [ "$status" -eq 1 ] || fail "$arguments: exit status $status, expected 1"
    says_in_one_line 'standard output: No space left on device'
  done
}
it_ends_quietly_when_nobody_reads() {
  "$dtrun" ar --prompt "$prompt" -n 200 --ignore-eos -q 2>stderr | head -c 1 >/dev/null
  [ -s stderr ] && fail 'something on standard error'
  return 0
}

it_ends_with_what_there_is_on_ctrl_c() {
  write_slow_policy
  set -m # otherwise bash makes a background job ignore the signal
  "$dtrun" ./slow.lua --prompt "$prompt" -n -1 --ignore-eos --json r.json >stdout 2>stderr &
  for _ in $(seq 1000); do [ -s stdout ] && break || sleep 0.02; done
  kill -INT $!
  status=0
  wait $! || status=$?
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  says_in_one_line '\(interrupted\)'
  check_result r.json finish_reason=interrupted
  mv stdout text
  tokens=$(sed -n 's/^dtrun: \([0-9]*\) tokens\{0,1\} .*/\1/p' stderr)
  succeeds ar --prompt "$prompt" -n "$tokens" --ignore-eos
  same_text text stdout
}
it_dies_of_a_second_ctrl_c() {
  cat >stuck.lua <<'LUA'
io.stdout:write("started\n"):flush()
io.read("a")
LUA
  set -m
  mkfifo silence
  exec 9<>silence # so that reading it returns nothing and does not end
  "$dtrun" run ./stuck.lua <&9 >stdout 2>stderr &
  for _ in $(seq 1000); do [ -s stdout ] && break || sleep 0.02; done
  kill -INT $!
  sleep 0.2
  kill -INT $!
  status=0
  { wait $!; } 2>/dev/null || status=$?
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
}

it_ends_with_3_after_the_text_when_the_policy_fails() {
  cat >fails.lua <<'LUA'
local policy = require "dt.policy"
local Fails = policy.define { name = "fails", doc = "fails at its fifth iteration", uses = { draft = false } }
function Fails:init() self.n = 0 end
function Fails:draft()
  self.n = self.n + 1
  if self.n == 5 then error("enough") end
end
return Fails
LUA
  run "$dtrun" ./fails.lua --prompt "$prompt" -n 60 --ignore-eos --json r.json
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  says_in_one_line 'fails.lua:6:.*enough'
  check_result r.json tokens=4 finish_reason=policy
  mv stdout text
  succeeds ar --prompt "$prompt" -n 4 --ignore-eos
  same_text text stdout
  run "$dtrun" ar --text hello -n 20 -q --compare ./fails.lua
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  says_in_one_line 'fails.lua:6:.*enough'
}
it_ends_with_3_when_a_policy_does_not_load() {
  echo 'local = 3' >broken.lua
  refuses 3 'broken.lua:1:' ./broken.lua --text hello
  printf '\033LuaT' >bytecode.lua
  refuses 3 'bytecode.lua' ./bytecode.lua --text hello
  echo 'return 3' >number.lua
  refuses 3 'number.lua' ./number.lua --text hello
}

it_lists_what_is_installed() {
  succeeds --list
  for name in ar linear fixed_tree dynatree; do grep -qE "^  $name +[^ ]" stdout || fail "no $name"; done
}
it_lists_policies_that_do_not_load_with_their_error() {
  mkdir -p policies scripts
  echo 'local = 3' >policies/broken.lua
  printf '#!/usr/bin/env dtrun\n-- measures something\n' >scripts/measure.lua
  DTRUN_HOME=. succeeds --list
  grep -qE '^  broken +error: .*broken.lua:1:' stdout || fail 'no broken'
  grep -qE '^  measure +measures something$' stdout || fail 'no measure'
}
it_helps() {
  succeeds --help
  [ -s stderr ] && fail 'something on standard error'
  for option in --prompt --text --target -md --tokens --ctx --threads --backend --set --preset --ignore-eos --stop --compare --json --trace; do
    grep -qF -- "$option" stdout || fail "no $option"
  done
  [ "$(awk '{ if (length > 110) n++ } END { print n + 0 }' stdout)" -eq 0 ] || fail 'long lines'
}
it_helps_with_a_policy() {
  succeeds dynatree --help
  grep -qE '^  D0 +5 +integer +.*\(1\.\.64\)$' stdout || fail 'no D0'
  grep -q 'as_published' stdout || fail 'no preset'
  succeeds dynatree --help --set D0=4
  grep -qE '^  D0 +4 ' stdout || fail 'no D0=4'
}
it_tells_its_version() {
  succeeds --version
  grep -qE '^dtrun [0-9]+\.[0-9]+\.[0-9]+$' stdout || fail 'no version'
}
it_takes_models_from_the_environment() {
  DTRUN_TARGET=$models/mini-draft succeeds ar --text hello -n 5 --json r.json
  check_result r.json "target=$models/mini-draft"
  DTRUN_TARGET=nowhere succeeds ar --target "$models/mini-draft" --text hello -n 5
}
it_needs_no_draft_model_for_plain_decoding() {
  succeeds ar --target "$models/mini-target" --text hello -n 5 --json r.json
  check_result r.json draft=nil draft_dtype=nil
}
it_says_how_weights_are_held() {
  succeeds linear --text hello -n 5 --json r.json
  check_result r.json target_dtype=f16 draft_dtype=f16
  succeeds linear --text hello -n 5 --json r.json --backend cpu --draft-weights q4
  check_result r.json target_dtype=f16 draft_dtype=q4
  succeeds linear --text hello -n 5 --json r.json --backend cpu --draft-dtype int8 # its former name
  check_result r.json draft_dtype=q8
  succeeds linear --text hello -n 20 --json r.json --backend cpu --weights q4 --draft-weights q8 --compare ar
  check_result r.json target_dtype=q4 draft_dtype=q8
  succeeds ar --text hello -n 5 --json r.json --backend cpu --weights f32
  check_result r.json target_dtype=f32 draft_dtype=nil
}
it_cuts_what_the_draft_may_guess() {
  succeeds ar --text 'The old man' -n 40 -q && cp stdout plain
  succeeds linear --text 'The old man' -n 40 -q --json whole.json
  check_result whole.json draft_vocab=nil
  for n in 1 600 4096; do # the models have 4096 rows
    succeeds linear --text 'The old man' -n 40 -q --backend cpu --draft-vocab "$n" && same_text plain stdout
  done
  succeeds run vocab --ids 500 && same_text <(wc -l <vocab.txt) <(sort -un vocab.txt | wc -l)
  grep -qE '^vocab.txt: 500 of 4096 ids; the texts have [0-9]+ tokens with [0-9]+ different ids; [0-9.]+ % of the tokens are listed$' stdout || fail 'the line'
  succeeds linear --text 'The old man' -n 40 -q --backend cpu --draft-vocab vocab.txt --json r.json
  check_result r.json draft_vocab="500 ids $(grep -oE '500 ids [0-9a-f]{64}' r.json | cut -d' ' -f3)"
  succeeds dynatree --text 'The old man' -n 40 --temp 0.8 --seed 3 --draft-vocab vocab.txt --draft-weights q8 --weights q8 --backend cpu --compare ar --rounds 1
  succeeds ar --text hello -n 5 --json r.json --draft-vocab 600
  check_result r.json draft_vocab=nil
}
it_says_how_keys_and_values_are_held() {
  succeeds linear --text hello -n 5 --json r.json --backend cpu
  check_result r.json cache_dtype=f16
  for type in f32 q8; do
    succeeds linear --text hello -n 5 --json r.json --backend cpu --cache-dtype $type --compare ar
    check_result r.json cache_dtype=$type
  done
}
it_says_how_finely_rows_enter_quantized_weights() {
  succeeds linear --text hello -n 5 --json r.json --backend cpu
  check_result r.json activations=nil
  succeeds linear --text hello -n 40 --json r8.json --backend cpu --weights q8 --compare ar --rounds 1
  check_result r8.json activations=8
  succeeds linear --text hello -n 40 --json r16.json --backend cpu --weights q8 --activations 16 --compare ar --rounds 1
  check_result r16.json activations=16
  succeeds linear --text hello -n 5 --json r.json --backend cpu --activations 16 --draft-weights q8
  check_result r.json activations=nil
}
it_scales_positions_as_the_files_would() {
  local asked=(-md none --backend cpu -p 'It was a dark and stormy night' -n 40 --ignore-eos -c 300 -q)
  cp -r "$source_dir/models/mini-target" copy
  sed -i '1a "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 64},' copy/config.json
  succeeds ar -m copy "${asked[@]}" --json r.json
  check_result r.json rope_scaling=nil
  mv stdout copy.txt
  succeeds ar -m "$source_dir/models/mini-target" "${asked[@]}"
  cmp -s stdout copy.txt && fail 'the scaling changes no token'
  succeeds prompt_lookup -m "$source_dir/models/mini-target" "${asked[@]}" --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 64 --json r.json
  cmp stdout copy.txt || fail 'the option and the file give other tokens'
  check_result r.json 'rope_scaling=yarn 4 of 64'
}
it_tells_in_the_manual_which_variables_it_reads() {
  succeeds --man
  local reads
  reads=$(grep -rhoE '"(DTRUN|HF|XDG)(_[A-Z]+)+"' "$source_dir"/runtime "$source_dir"/lua --include=*.c --exclude=help.c |
    tr -d '"' | sort -u)
  [ "$(wc -w <<<"$reads")" -ge 9 ] || fail "too few variables: $reads"
  for name in $reads; do
    sed -n '/^\.SH ENVIRONMENT/,/^\.SH EXAMPLES/p' stdout | grep -q "^\.B.*\b$name\b" || fail "$name is missing"
  done
}
it_runs_a_driver_with_its_own_arguments() {
  printf 'print(#arg, arg[1], arg[2], arg[3]) os.exit(tonumber(arg[1]))' >driver.lua
  run "$dtrun" run ./driver.lua 5 --help -q
  [ "$status" -eq 5 ] || fail "exit status $status, expected 5"
  [ "$(cat stdout)" = $'3\t5\t--help\t-q' ] || fail 'arguments'
}

run_tests
