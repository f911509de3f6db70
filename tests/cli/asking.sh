#!/usr/bin/env bash
# sweep and tune take the options for texts of the command line (chats, sampling, several texts at once), and experiments record them.
. "$(dirname "$0")/helpers.sh"
novels=$source_dir/scripts/prompts/novels
runs() { "$dtrun" run "$source_dir/tests/cli/runs.lua" "$1"; }
sweep=(run sweep -t 1 linear --set 'K=2,4' --repeats 1 --warmup 0)

same_runs() {
  runs "$1" >first && runs "$2" >second || fail 'a file that cannot be read'
  same_text first second
}
# hashes FILE: the output hashes of plain decoding by prompt; a batch has several
hashes() { runs "$1" | sed -n 's/^ar|[^|]*|[^|]*|1|\(.*\)|0$/\1/p' | tr ' ' '\n'; }
# make_questions N: writes the file p.jsonl
make_questions() {
  local list=('Hello there' 'What is it?' 'And now?' 'Who goes there?' 'Why?') i
  for ((i = 0; i < $1; i++)); do printf '{"id": %d, "prompt": "%s"}\n' "$i" "${list[i]}"; done >p.jsonl
}
# of_command_line OPTIONS...: the output hashes of the command line for p.jsonl
of_command_line() {
  "$dtrun" ar --prompts p.jsonl -n 12 -t 1 -q --json r.json "$@" >/dev/null || fail "ar $*"
  grep -oE '"output_hash": *"[0-9a-f]{16}"' r.json | grep -oE '[0-9a-f]{16}'
}

# Each driver refuses options below and above their bounds with the same line as the command line.
it_refuses_what_the_command_line_refuses_with_its_words() {
  local bad=('--temp -0.1' '--temp 100.1' '--temp x' '--temp nan' '--temp 1e-40' '--temp 1e-99' '--temp 0.0005' '--temperature 101'
    '--top-k -1' '--top-k 2147483648' '--top-k 1.5' '--top-p 0' '--top-p 1.01' '--top-p=-1' '--min-p -0.01' '--min-p 1.01' '--seed -1'
    '--seed 18446744073709551616' '--seed 1.0' '-s x' '-np 0' '-np 257' '--parallel x' '--template nope' '--chat'
    '--template mistral --system x' '--system x')
  local options
  for options in "${bad[@]}"; do
    # shellcheck disable=SC2086 # words
    run "$dtrun" ar -p hi -n 2 -t 1 $options
    [ "$status" -eq 2 ] || fail "$options: the command line takes it"
    sort -u stderr >expected
    # shellcheck disable=SC2086
    refuses 2 '' run sweep -t 1 linear --prompt "$novels/01.txt" --chars 60 -n 2 --out o.jsonl $options
    same_text expected stderr
    # shellcheck disable=SC2086
    refuses 2 '' run tune -t 1 linear --prompt "$novels"/0[12].txt --out o.jsonl $options
    same_text expected stderr
  done
  [ ! -e o.jsonl ] || fail 'a file of results was begun'
}
it_takes_what_lies_at_the_bounds() {
  local options
  for options in '--temp 0' '--temp 0.001' '--temp 100' '--temp 1 --top-k 1' '--temp 1 --top-k 2147483647' '--temp 1 --top-p 1e-37' \
    '--temp 1 --top-p 1' '--temp 1 --min-p 0' '--temp 1 --min-p 1' '--temp 1 --seed 0' '--temp 1 --seed 18446744073709551615' \
    '-np 1' '-np 256' '--temp 1 --seed 18446744073709551615 -np 2'; do
    printf '{"id": 1, "prompt": "Hello"}\n{"id": 2, "prompt": "You"}\n' >p.jsonl
    rm -f o.jsonl
    # shellcheck disable=SC2086 # words
    succeeds "${sweep[@]}" --prompts p.jsonl -n 4 --out o.jsonl $options
    # shellcheck disable=SC2086
    "$dtrun" ar --prompts p.jsonl -n 4 -t 1 -q --json r.json $options >/dev/null || fail "ar $options"
    [ "$(hashes o.jsonl)" = "$(grep -oE '"output_hash": *"[0-9a-f]{16}"' r.json | grep -oE '[0-9a-f]{16}')" ] || fail "$options: another text"
  done
}
it_says_that_nothing_is_sampled_at_temperature_0() {
  for options in '--top-p 0.5' '--top-k 3' '--min-p 0.1' '--top-k 3 --top-p 0.5'; do
    # shellcheck disable=SC2086 # words
    run "$dtrun" ar -p hi -n 2 -t 1 $options
    grep 'has no effect' stderr >expected
    # shellcheck disable=SC2086
    succeeds "${sweep[@]}" --prompt "$novels/01.txt" --chars 60 -n 2 $options
    grep 'has no effect' stderr | cmp -s expected - || fail "$options"
  done
  succeeds "${sweep[@]}" --prompt "$novels/01.txt" --chars 60 -n 2 --min-p 0
  grep -q 'has no effect' stderr && fail 'nothing was asked for'
  return 0
}
it_makes_the_texts_of_the_command_line() {
  make_questions 5
  for options in '--template chatml' '--template chatml --system Brief.' '--temp 0.8 --top-k 20 --top-p 0.9 --min-p 0.01 --seed 7' \
    '--template chatml --temp 1 --seed 18446744073709551613'; do
    # shellcheck disable=SC2086 # words
    of_command_line $options >expected
    [ "$(wc -l <expected)" -eq 5 ] || fail 'not five texts'
    for parallel in '' '-np 1' '-np 2' '-np 5' '-np 8'; do
      rm -f o.jsonl
      # shellcheck disable=SC2086
      succeeds "${sweep[@]}" --prompts p.jsonl -n 12 --out o.jsonl $options $parallel
      hashes o.jsonl | cmp -s expected - || fail "$options $parallel: $(hashes o.jsonl | tr '\n' ' ')"
    done
  done
}
it_answers_to_the_template_of_the_model() {
  mkdir model
  cp "$models"/mini-target/* model/
  echo "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}" >model/chat_template.jinja
  make_questions 2
  of_command_line --chat -m model --draft "$models/mini-draft" >expected
  succeeds "${sweep[@]}" --chat -m model --draft "$models/mini-draft" --prompts p.jsonl -n 12 --out o.jsonl
  hashes o.jsonl | cmp -s expected - || fail 'another text'
  grep -q '"chat": "chat_template.jinja"' o.jsonl || fail 'the template is not named'
}
it_tells_the_same_date_on_every_day() {
  make_questions 1
  succeeds "${sweep[@]}" --template llama3.1 --prompts p.jsonl -n 12 --out o.jsonl
  grep -q '"date": "26 Jul 2024"' o.jsonl || fail 'the date is not noted down'
  local text=$'<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>'
  text+=$'<|start_header_id|>user<|end_header_id|>\n\nHello there<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n'
  "$dtrun" ar -p "$text" -n 12 -t 1 -q --stop '<|eot_id|>' --json r.json >/dev/null || fail ar
  "$dtrun" run "$source_dir/tests/cli/result.lua" r.json "stats.output_hash=$(hashes o.jsonl)" || fail 'another day'
}
it_notes_down_what_was_asked_for_and_goes_on_with_nothing_else() {
  make_questions 3
  local asked=("${sweep[@]}" --prompts p.jsonl -n 6 --template chatml --system Brief. --temp 0.8 --top-p 0.9 --seed 7 -np 2)
  succeeds "${asked[@]}" --out whole.jsonl
  head -1 stdout | grep -q 'prompts: 3, tokens: 6, temp 0.8, top_p 0.9, chat chatml, 2 at once, ' || fail "the summary: $(head -1 stdout)"
  local name
  for name in '"chat": "chatml"' '"system": "Brief."' '"date": ' '"temp": 0.8' '"top_p": 0.9' '"seed": 7' '"parallel": 2'; do
    head -1 whole.jsonl | grep -qF "$name" || fail "$name is not noted down"
  done
  for i in 1 2; do succeeds "${asked[@]}" --out s.jsonl --shard $i/2; done
  succeeds run merge s.jsonl s-1of2.jsonl s-2of2.jsonl
  runs whole.jsonl | grep -v '^ar|' >first
  runs s.jsonl | grep -v '^ar|' >second
  same_text first second
  cp s.jsonl before
  succeeds "${asked[@]}" --out s.jsonl # everything has been done already
  same_text before s.jsonl
  head -3 whole.jsonl >torn.jsonl
  succeeds "${asked[@]}" --out torn.jsonl
  same_runs whole.jsonl torn.jsonl
  refuses 2 'whole.jsonl: made with system = "Brief.", not "Long."' "${asked[@]}" --out whole.jsonl --system Long.
  refuses 2 'whole.jsonl: made with chat = "chatml", not "llama2"' "${asked[@]}" --out whole.jsonl --template llama2
  refuses 2 'whole.jsonl: made with top_p = 0.9, not 1' "${asked[@]}" --out whole.jsonl --top-p 1
  refuses 2 'whole.jsonl: made with top_k = null, not 5' "${asked[@]}" --out whole.jsonl --top-k 5
  refuses 2 'whole.jsonl: made with parallel = 2, not 3' "${asked[@]}" --out whole.jsonl -np 3
  succeeds run report whole.jsonl --out r
  for name in 'chat | chatml' 'date | 26 Jul 2024' 'parallel | 2' 'seed | 7' 'system | Brief.' 'temp | 0.8' 'top_p | 0.9'; do
    grep -qE "^\| ${name/ | / +\| +} +\|\$" r/report.md || fail "$name is not in the report"
  done
}
it_tunes_a_chat_model_and_says_what_for() {
  export XDG_CONFIG_HOME=$PWD/config
  make_questions 5
  local asked=(run tune -t 1 --settings 3 -n 8 --repeats 1 linear --prompts p.jsonl --save-anyway)
  succeeds "${asked[@]}" --template chatml --temp 0.8 --seed 3 -np 2 --out o.jsonl
  grep -qx 'for: temp 0.8, chat chatml, 2 at once' stdout || fail 'for what'
  grep -q '^speedup after the prompt on 2 held-out prompts: ' stdout || fail 'how many prompts'
  head -1 o.jsonl | grep -q '"chat": "chatml"' || fail 'the template is not noted down'
  head -1 o.jsonl | grep -q '"ignore_eos": false' || fail 'answers go on past their end'
  grep -q '"tuned_for": "temp 0.8, chat chatml, 2 at once"' config/dtrun/presets/linear-*.json || fail 'the preset does not say what for'
  succeeds linear --preset tuned --text hello -n 4 -t 1
  refuses 2 'o.jsonl: made with temp = 0.8, not 0.9' "${asked[@]}" --template chatml --temp 0.9 --seed 3 -np 2 --out o.jsonl
  succeeds "${asked[@]}"
  grep -q '^for: ' stdout && fail 'nothing was asked for'
  grep -q tuned_for config/dtrun/presets/linear-*.json && fail 'the preset says what it was not tuned for'
  return 0
}
it_sweeps_a_real_chat_model() {
  local model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
  [ -e "$model" ] || { echo '  skipped: no SmolLM2; scripts/get-model smollm2 brings it'; return 0; }
  printf '{"id": 1, "prompt": "What is the capital of France?"}\n{"id": 2, "prompt": "What is the capital of Italy?"}\n' >p.jsonl
  "$dtrun" ar --chat -m "$model" --draft none --prompts p.jsonl -np 1 -n 12 -q --json r.json >/dev/null || fail ar
  grep -oE '"output_hash": *"[0-9a-f]{16}"' r.json | grep -oE '[0-9a-f]{16}' >expected
  for parallel in '' '-np 2'; do
    rm -f o.jsonl
    # shellcheck disable=SC2086 # words
    succeeds run sweep prompt_lookup --chat -m "$model" --draft none --prompts p.jsonl -n 12 --repeats 1 --warmup 0 --out o.jsonl $parallel
    hashes o.jsonl | cmp -s expected - || fail "another text: $parallel"
  done
  grep -q '"chat": "tokenizer.chat_template"' o.jsonl || fail 'the template is not named'
}

run_tests
