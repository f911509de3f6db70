#!/usr/bin/env bash
# Chats: questions wrapped in a template, and conversations at a terminal (tmux). The bundled pair answers nonsense, but the same.
. "$(dirname "$0")/helpers.sh"

user() { printf '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n' "$1"; }
# one_run TEXT: what plain decoding gives of a whole conversation
one_run() { "$dtrun" ar -p "$1" --stop '<|im_end|>' -n 20 -q || fail 'ar'; }
answers() { "$dtrun" run "$source_dir/tests/cli/answers.lua" "$@" || fail 'answers.lua'; }

it_wraps_a_question() {
  succeeds linear --chat --template chatml -p 'Hello there' -n 20 -q
  [ "$(cat stdout)" = "$(one_run "$(user 'Hello there')"$'\n')" ] || fail 'not the answer to the wrapped question'
  succeeds linear --template chatml --system 'Be brief.' -p 'Hello there' -n 20 -q
  [ "$(cat stdout)" = "$(one_run "$(printf '<|im_start|>system\nBe brief.<|im_end|>\n'; user 'Hello there')"$'\n')" ] || fail 'system text'
  printf '{"prompt": "%s"}\n' 'Hello there' 'Hello there' >p.jsonl
  succeeds dynatree --template chatml --prompts p.jsonl -n 20 -q --compare ar
}
it_reads_the_template_of_the_model() {
  mkdir model
  cp "$models"/mini-target/* model/
  refuses 2 'model has no chat template: give --template NAME' ar --chat -m model -p hi
  local chatml="{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\\\n' + m['content'] + '<|im_end|>\\\\n'}}{% endfor %}"
  succeeds ar --template chatml -m model -p hi -n 20 -q
  mv stdout expected
  echo "{\"chat_template\": \"$chatml\"}" >model/tokenizer_config.json
  succeeds ar --chat -m model -p hi -n 20 -q
  same_text expected stdout
  echo "{\"chat_template\": [{\"name\": \"tool\", \"template\": \"x\"}, {\"name\": \"default\", \"template\": \"$chatml\"}]}" >model/tokenizer_config.json
  succeeds ar --chat -m model -p hi -n 20 -q
  same_text expected stdout
  echo '{{ unknown }}' >model/chat_template.jinja # goes before the other file
  refuses 2 'model: its chat template is none that is known: give --template NAME \(chatml, ' ar --chat -m model -p hi
  echo "{{'<|im_start|>'}}" >model/chat_template.jinja
  succeeds ar --chat -m model -p hi -n 20 -q
  same_text expected stdout
  head -c 1048577 /dev/zero | tr '\0' x >model/chat_template.jinja
  refuses 2 'chat_template.jinja: over 1048576 bytes, expected a chat template' ar --chat -m model -p hi
  rm model/chat_template.jinja
  echo '{"chat_template": 3}' >model/tokenizer_config.json
  refuses 2 'model has no chat template' ar --chat -m model -p hi
  echo '{' >model/tokenizer_config.json
  refuses 2 'tokenizer_config.json: not valid JSON' ar --chat -m model -p hi
}
it_reads_the_template_of_a_gguf_file() {
  local model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
  [ -e "$model" ] || { echo '  skipped: no SmolLM2; scripts/get-model smollm2 brings it'; return 0; }
  succeeds ar --chat -m "$model" -p 'What is the capital of France?' -n 20 --json r.json -q
  grep -q '^The capital of France is Paris\.$' stdout || fail 'not the answer'
  "$dtrun" run "$source_dir/tests/cli/result.lua" r.json finish_reason=eos || fail 'the end of the answer'
}
it_refuses_templates_and_options_that_do_not_fit() {
  refuses 2 "no chat template 'alpaca': chatml, llama2, " ar --template alpaca -p hi
  refuses 2 'the chat template mistral takes no system text' ar --template mistral --system x -p hi
  refuses 2 'chat: no place for --prompt, --text and --prompts: the questions are typed' chat --template chatml -p hi
  refuses 2 'chat: no place for --json' chat --template chatml --json r.json
  refuses 2 'mini-target has no chat template' chat
  refuses 2 "no policy 'nope'" chat nope --template chatml
  refuses 2 'give --draft' chat linear -m "$models/mini-target" --draft none --template chatml
}
it_gives_after_n_turns_what_one_run_on_the_whole_text_gives() {
  printf '%s\n' 'Hello there' 'What is it?' '/policy fixed_tree' 'And now?' '/save c.json' |
    "$dtrun" chat linear --template chatml -n 20 --stats >stdout 2>stderr || fail 'exit status'
  local text='' i question
  for i in 1 2 3; do
    question=$(answers c.json $((2 * i - 1)))
    text+=$(user "$question")$'\n'
    [ "$(answers c.json $((2 * i)))" = "$(one_run "$text")" ] || fail "answer $i"
    text+=$(answers c.json $((2 * i)); echo '<|im_end|>')$'\n'
  done
  [ "$(grep -cE '^dtrun: 20 tokens, .* [1-9][0-9]+ of [1-9][0-9]+ prompt tokens kept; time: ' stderr)" -eq 2 ] || fail 'no rows were kept'
}
it_answers_from_a_pipe_without_a_draft_model() {
  printf 'Hello there\n\n  \n/policy linear\n/reset\nHello there' | "$dtrun" chat -m "$models/mini-target" --draft none --template chatml -n 9 -q >stdout 2>stderr ||
    fail 'exit status'
  grep -q 'linear needs a draft model: begin with --draft MODEL' stderr || fail 'a policy that cannot serve'
  [ "$(head -2 stdout)" = "$(tail -2 stdout)" ] || fail 'after /reset the answer is the first one'
  [ "$(grep -c '> ' stdout)" -eq 0 ] || fail 'a prompt where there is no terminal'
}

# ---- at a terminal

keys() { tmux -S socket send-keys "$@" || fail 'tmux send-keys'; }
screen() { tmux -S socket capture-pane -p -S -; }
# sees PATTERN: it appears on the screen, in time
sees() {
  for _ in $(seq 500); do
    screen >screen.txt 2>/dev/null && grep -qE "$1" screen.txt && return
    sleep 0.04
  done
  sed 's/^/  screen: /' screen.txt
  fail "did not see '$1'"
}

it_converses_at_a_terminal() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  cat >slow.lua <<'LUA'
local policy = require "dt.policy"
local Slow = policy.define { name = "slow", uses = { draft = false } }
function Slow:init() self.calls = 0 end
function Slow:draft() -- says so when the answer has begun: one that is cut before its first token leaves nothing
  self.calls = self.calls + 1
  if self.calls == 2 then print "slowly" end
  for _ = 1, 4000000 do end
end
return Slow
LUA
  trap 'tmux -S socket kill-server 2>/dev/null' EXIT
  tmux -S socket -f /dev/null new-session -d -x 150 -y 50 "'$dtrun' chat ar --template chatml -n 24 --ignore-eos; echo left with \$?; cat"
  sees 'mini-target under ar, chat template chatml; /help lists commands'
  keys 'Hello there' Enter
  sees 'Mountaine'
  keys '/stats on' Enter 'What is it?' Enter # two turns
  sees '24 tokens, .* [0-9]+ of [0-9]+ prompt tokens kept; time: '
  keys '/policy ./slow.lua' Enter '/stats' Enter
  sees '2 answers, 48 tokens, .* tokens of context used'
  keys 'And now?' Enter
  sees slowly
  keys C-c # ends the answer, not the program
  sees '\(interrupted\)'
  keys '/stats' Enter
  sees '3 answers, '
  keys 'a line that is not sent' C-c # a line that is typed is dropped
  keys '/policy linear' Enter '/policy' Enter
  sees '/policy: now linear'
  keys 'More' Enter
  sees '24 tokens, .* drafted accepted, [0-9]+ of [0-9]+ prompt tokens kept'
  keys '/nonsense' Enter
  sees 'no command /nonsense: /help lists them'
  keys '/save c.json' Enter '/quit' Enter
  sees 'left with 0'
  [ "$(answers c.json)" -eq 8 ] || fail 'expected four questions and their answers'
  [ "$(answers c.json 5)" = 'And now?' ] && [ "$(answers c.json 7)" = 'More' ] || fail 'the conversation'
}
it_ends_with_ctrl_d() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  trap 'tmux -S socket kill-server 2>/dev/null' EXIT
  tmux -S socket -f /dev/null new-session -d -x 150 -y 50 "'$dtrun' chat --template chatml; echo left with \$?; cat"
  sees '^>'
  keys 'no question' C-c # drops the line
  sees '^> .*\^C'
  keys C-d
  sees 'left with 0'
}

run_tests
