#!/usr/bin/env bash
# Chats: questions wrapped in a template, and conversations at a terminal (tmux). The bundled pair answers nonsense, but always the same.
. "$(dirname "$0")/helpers.sh"

user() { printf '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n' "$1"; }
# one_run TEXT: the output of plain decoding for a whole conversation
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
  local chatml="{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\\\n' + m['content'] + '<|im_end|>\\\\n'}}{% endfor %}{{'<|im_start|>assistant\\\\n'}}"
  succeeds ar --template chatml -m model -p hi -n 20 -q
  mv stdout expected
  echo "{\"chat_template\": \"$chatml\"}" >model/tokenizer_config.json
  succeeds ar --chat -m model -p hi -n 20 -q
  same_text expected stdout
  echo "{\"chat_template\": [{\"name\": \"tool\", \"template\": \"x\"}, {\"name\": \"default\", \"template\": \"$chatml\"}]}" >model/tokenizer_config.json
  succeeds ar --chat -m model -p hi -n 20 -q
  same_text expected stdout
  echo '{{ messages[0].contents.text }}' >model/chat_template.jinja # takes precedence over the other file
  refuses 2 'chat template chat_template.jinja, line 1: ' ar --chat -m model -p hi
  echo '{% if %}' >model/chat_template.jinja
  refuses 2 'model: chat template chat_template.jinja, line 1: .*; --template NAME or FILE uses another one' ar --chat -m model -p hi
  echo "{{ raise_exception('No, ' + messages[0].role) }}" >model/chat_template.jinja
  refuses 2 'No, user$' ar --chat -m model -p hi
  printf %b "$chatml" >model/chat_template.jinja
  succeeds ar --chat -m model -p hi -n 20 -q
  same_text expected stdout
  head -c 1048577 /dev/zero | tr '\0' x >model/chat_template.jinja
  refuses 2 'chat_template.jinja: the file has more than 1048576 bytes, too many for a chat template' ar --chat -m model -p hi
  rm model/chat_template.jinja
  echo '{"chat_template": 3}' >model/tokenizer_config.json
  refuses 2 'model has no chat template' ar --chat -m model -p hi
  echo '{' >model/tokenizer_config.json
  refuses 2 'tokenizer_config.json: not valid JSON' ar --chat -m model -p hi
}
# A random model calls tools only where a grammar makes it.
it_calls_tools() {
  cat >tools.json <<'JSON'
[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}},
  "required": ["city"], "additionalProperties": false}}}]
JSON
  local call='root ::= "I ask.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"'
  printf '%s\n' "/set grammar $call" 'The weather?' '21 degrees' '/save c.json' >lines
  # the grammar makes each answer a call, so the input ends while a result is asked for
  "$dtrun" chat ar --template llama3 --tools tools.json -n 120 -q <lines >stdout 2>stderr
  grep -q 'get_weather {"city": "Rome"}' stderr || fail "the call is not shown: $(<stderr)"
  printf '%s\n' "/set grammar $call" 'The weather?' '/save d.json' |
    "$dtrun" chat ar --template llama3 --tools tools.json --tool-command 'cat >>called; echo 21 degrees' -n 120 -q >stdout 2>stderr
  [ "$(head -n 1 called)" = '{"name":"get_weather","arguments":{"city": "Rome"}}' ] || fail "the command got: $(<called)"
  [ "$(wc -l <called)" -eq 20 ] && grep -q 'the answers called tools 20 times' stderr || fail "no end of calls: $(<stderr)"
  printf '%s\n' 'Hello there' '/save e.json' | succeeds chat ar --template llama3 --tools tools.json -n 12 -q
  [ "$(answers e.json)" -eq 2 ] || fail "free text: $(<e.json)"
  printf 'The weather?\n' | succeeds chat ar --template llama3 --tools tools.json --tool-command 'exit 3' -n 12 -q
  refuses 2 '--tools is an option of dtrun chat' ar --template llama3 --tools tools.json -p hi
  refuses 2 '--tool-command needs --tools FILE' chat --template llama3 --tool-command x
  refuses 2 'tools nowhere.json: ' chat --template llama3 --tools nowhere.json
  echo '{}' >wrong.json
  refuses 2 '--tools wrong.json: tools: expected a JSON list of functions' chat --template llama3 --tools wrong.json
}
# The reasoning ends after the tokens that it may have, under every policy.
it_limits_reasoning() {
  cat >think.jinja <<'JINJA'
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content.split('</think>')[-1] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{{ '<think>\n' if enable_thinking is undefined or enable_thinking else '<think>\n\n</think>\n\n' }}{% endif %}
JINJA
  local tokens policy temp
  for temp in 0 0.8; do
    for tokens in 0 5 17; do
      for policy in ar linear dynatree fixed_tree rate suffix; do
        succeeds "$policy" --chat --template think.jinja -p 'Hello there' -n 40 --think-tokens $tokens --temp $temp --seed 3 -q
        [ "$policy" = ar ] && mv stdout expected && continue
        same_text expected stdout
      done
      grep -q '</think>' expected || fail "no end of the reasoning: $(<expected)"
    done
  done
  succeeds ar --chat --template think.jinja -p 'Hello there' -n 40 -q
  mv stdout endless
  succeeds ar --chat --template think.jinja -p 'Hello there' -n 40 --think-tokens 40 -q
  same_text endless stdout
  printf '%s\n' '/set think off' Hello '/set think on' '/set think_tokens 4' 'Hello there' '/save c.json' | succeeds chat ar --template think.jinja -n 30 -q
  [ "$(grep -c '"reasoning_content"' c.json)" -eq 1 ] || fail "one answer with reasoning: $(<c.json)"
}
it_says_that_there_is_no_template_before_it_loads() {
  local words
  for words in "chat" "chat ar -m $models/mini-target" "ar --chat -p hi" "ar --system x -p hi" "ar --template alpaca -p hi"; do
    script -qec "$dtrun $words" typescript >/dev/null </dev/null && fail "$words: exit status 0"
    grep -qE 'has no chat template: give --template NAME|no chat template .alpaca.' typescript || fail "$words: $(cat typescript)"
    grep -q loading typescript && fail "$words: loads first"
  done
  refuses 2 'no such folder: ./nowhere' ar --chat -m ./nowhere -p hi
  refuses 2 'no such file: nowhere.gguf' chat nowhere.gguf
  [ -x "$(dirname "$dtrun")/dtrun-serve" ] || return 0
  script -qec "$dtrun serve --template alpaca --port 0" typescript >/dev/null </dev/null && fail 'serve: exit status 0'
  grep -q "no chat template 'alpaca'" typescript || fail "serve: $(cat typescript)"
  grep -q loading typescript && fail 'serve: loads first'
  true
}
# A model with a chat template.
make_chat_model() {
  mkdir model
  cp "$models"/mini-target/* model/
  echo "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}" >model/chat_template.jinja
}
it_says_that_chat_asks_a_question() {
  make_chat_model
  local hint='^dtrun: the chat model continued the prompt as a text: give --chat to ask it a question$'
  at_terminal -- "$dtrun" ar -m model -p 'Is it dark?' -n 5
  grep -q "$hint" stdout || fail "nothing said: $(cat stdout)"
  at_terminal -- "$dtrun" ar -m model -p 'Is it dark?' -n 5 -q
  grep -q dtrun: stdout && fail 'said in spite of -q'
  at_terminal -- "$dtrun" ar -m model -p 'Is it dark?' -n 5 -q --logit-bias 0+100
  grep -q '^dtrun: the chat model ended the text at once: give --chat to ask it a question$' stdout || fail "nothing printed, nothing said: $(cat stdout)"
  echo 'Is it dark?' >prompt
  for words in '--chat -p hi' "-p $(user hi | tr -d '\n')" '-f prompt' '-p hi -p ho'; do
    # shellcheck disable=SC2086
    at_terminal -- "$dtrun" ar -m model $words -n 5
    [ "$status" -eq 0 ] || fail "$words: exit status $status"
    grep -q 'a chat model' stdout && fail "$words: taken for a bare question"
  done
  at_terminal -- "$dtrun" ar -p 'Is it dark?' -n 5
  grep -q 'a chat model' stdout && fail 'of a model without a template'
  succeeds ar -m model -p 'Is it dark?' -n 5
  grep -q 'a chat model' stderr && fail 'said where no terminal is'
  true
}
it_reads_the_template_of_a_gguf_file() {
  local model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
  [ -e "$model" ] || { echo '  skipped: no SmolLM2; scripts/get-model smollm2 brings it'; return 0; }
  succeeds ar --chat -m "$model" --cache-dtype f32 -p 'What is the capital of France?' -n 20 --json r.json -q
  grep -q '^The capital of France is Paris\.$' stdout || fail 'not the answer'
  "$dtrun" run "$source_dir/tests/cli/result.lua" r.json finish_reason=eos || fail 'the end of the answer'
}
it_refuses_templates_and_options_that_do_not_fit() {
  refuses 2 "no chat template 'alpaca': expected a file or one of: chatml, deepseek-r1, " ar --template alpaca -p hi
  refuses 2 'this chat template does not support a system message' ar --template mistral --system x -p hi
  refuses 2 'think off: the chat template chatml cannot turn reasoning on or off' ar --template chatml --think off -p hi
  refuses 2 'think no: expected on, off or auto|think .no.: expected on, off or auto' ar --template chatml --think no -p hi
  refuses 2 "--template-set 'x': expected NAME=VALUE" ar --template chatml --template-set x -p hi
  refuses 2 'chat does not take --prompt, --text and --prompts: questions are typed' chat --template chatml -p hi
  refuses 2 'chat does not take --json' chat --template chatml --json r.json
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
  [ "$(grep -cE '^dtrun: 20 tokens, .* [1-9][0-9]+ of [1-9][0-9]+ prompt tokens cached; time: ' stderr)" -eq 2 ] || fail 'no tokens were cached'
}
it_answers_from_a_pipe_without_a_draft_model() {
  printf 'Hello there\n\n  \n/policy linear\n/reset\nHello there' | "$dtrun" chat -m "$models/mini-target" --draft none --template chatml -n 9 -q >stdout 2>stderr ||
    fail 'exit status'
  grep -q 'linear needs a draft model: start dtrun chat with --draft MODEL' stderr || fail 'a policy that cannot serve'
  [ "$(head -2 stdout)" = "$(tail -2 stdout)" ] || fail 'after /reset the answer is the first one'
  [ "$(grep -c '> ' stdout)" -eq 0 ] || fail 'a prompt where there is no terminal'
}

it_answers_under_rate_where_no_policy_is_named() {
  printf '/policy\n' | succeeds chat --template chatml
  grep -q 'mini-target under rate, chat template chatml' stderr || fail 'another policy'
}
it_reads_questions_of_several_lines() {
  printf '%s\n' '"""one' ' two  ' '"""' '"""/three"""' 'four\' '  five' '"""' '' 'six """' '/save c.json' |
    succeeds chat ar --template chatml -n 2 -q
  [ "$(answers c.json 1)" = $'one\n two' ] || fail "between quotes: $(answers c.json 1)"
  [ "$(answers c.json 3)" = '/three' ] || fail 'a quoted question is no command'
  [ "$(answers c.json 5)" = $'four\n  five' ] || fail 'a backslash at the end of a line'
  [ "$(answers c.json 7)" = 'six' ] || fail 'quotes that end behind a text'
  printf '%s\n' '/save d.json' '"""never' 'ends' | succeeds chat ar --template chatml -n 2 -q
  grep -q '^dtrun: """ was not closed: the question is dropped' stderr || fail 'quotes without an end'
  [ "$(answers d.json)" -eq 0 ] || fail 'a question that was dropped'
  printf '%s\n' '"""' '"""' '/save e.json' | succeeds chat ar --template chatml -n 2 -q
  [ "$(answers e.json)" -eq 0 ] || fail 'an empty question'
}
it_drops_a_line_with_a_NUL_and_says_so() {
  printf 'What is \0 it?\nAnd now?\n/save c.json\n' | succeeds chat ar --template chatml -n 2 -q
  says_in_one_line 'the line is dropped: it has a NUL character, which a text cannot have'
  [ "$(answers c.json 1)" = 'And now?' ] && [ "$(answers c.json)" -eq 2 ] || fail 'the conversation'
}
it_answers_again_with_the_next_seed() {
  printf '%s\n' /regen 'Hello there' '/save a.json' /regen '/save b.json' |
    succeeds chat linear --template chatml -n 12 --temp 0.8 --seed 7 -q
  says_in_one_line 'there is no answer yet'
  [ "$(answers b.json)" -eq 2 ] || fail 'one question and one answer'
  for seed in 7 8; do "$dtrun" ar -p "$(user 'Hello there')"$'\n' --stop '<|im_end|>' -n 12 --temp 0.8 --seed $seed -q >s$seed 2>stderr || fail ar; done
  [ "$(answers a.json 2)" = "$(cat s7)" ] && [ "$(answers b.json 2)" = "$(cat s8)" ] || fail 'not the answers of seeds 7 and 8'
  printf '%s\n' 'Hello there' /retry | succeeds chat linear --template chatml -n 12 -q
  says_in_one_line 'at temperature 0 the answer would be the same; /temp 0.8 samples'
  [ "$(head -2 stdout)" = "$(tail -2 stdout)" ] || fail 'the same answer at temperature 0'
}
it_sets_what_samples_and_what_the_policy_has() {
  printf '%s\n' '/temp 0.8' '/set seed 7' '/set n-predict=12' '/set K 3' /set 'Hello there' '/save a.json' |
    succeeds chat linear --template chatml -q
  [ "$(grep -cE '^(temp    0.8|seed    7|tokens  12|K       3  .*)$' stdout)" -eq 4 ] || fail "what is set: $(cat stdout)"
  "$dtrun" ar -p "$(user 'Hello there')"$'\n' --stop '<|im_end|>' -n 12 --temp 0.8 --seed 7 -q >expected 2>stderr || fail ar
  [ "$(answers a.json 2)" = "$(cat expected)" ] || fail 'not what these settings give'
  tells() { # tells COMMAND LINE
    printf '%s\n' "$1" | succeeds chat linear --template chatml -q
    says_in_one_line "$2" chat "$1"
  }
  tells '/set temp hot' "/set temp 'hot': expected a number"
  tells '/set top_k -1' "/set top_k: -1 is out of range: at least 1, or 0 for all"
  tells '/set K 0' '0'
  tells '/set tmp 1' "/set: no 'tmp': did you mean temp\? /set lists all"
  tells '/set zzzz 1' "/set: no 'zzzz'; /set lists all"
  tells '/set target x' "/set: no 'target'"
  tells '/set temp' '/set temp: expected a value, as in /set temp 0.8'
  tells '/temp' '/set temp: expected a value'
  tells '/set top_p 0.9' 'at temperature 0 nothing is sampled; /temp 0.8 samples'
  tells '/sytem x' 'no command /sytem: did you mean /system\? /help lists all'
  tells '/nonsense' 'no command /nonsense: /help lists them'
  tells '/save' '/save: expected a file name'
}
it_holds_answers_to_a_grammar() {
  local schema='{"type": "object", "properties": {"a": {"maximum": 3, "minimum": 1}}, "required": ["a"]}'
  printf '%s\n' '/temp 1' '/set grammar root ::= a "!" \' 'a ::= [xy]{3}' 'Hello' '/set regex \d{2,3}' 'Hello' "/set json_schema $schema" 'Hello' '/save a.json' |
    succeeds chat linear --template chatml -q -n 60 --regex z
  answers a.json 2 | grep -qxE '[xy]{3}!' && answers a.json 4 | grep -qxE '[0-9]{2,3}' || fail "$(cat stdout)"
  answers a.json 6 | tr -d ' \n' | grep -qxE '\{"a":[123]\}' || fail "$(cat stdout)"
  printf '%s\n' '/set grammar none' /set '/set json_schema true' '/set json_schema none' /set 'Hello there' '/save b.json' |
    succeeds chat linear --template chatml -n 12 -q --regex z
  [ "$(grep -cx 'grammar none' stdout)" = 2 ] || fail "$(cat stdout)"
  printf '%s\n' 'Hello there' '/save c.json' | succeeds chat linear --template chatml -n 12 -q
  [ "$(answers b.json 2)" = "$(answers c.json 2)" ] || fail 'a grammar that was taken away'
  printf '%s\n' '/set regex z+' '/set grammar root ::= (' '/set json_schema {"minimum": "1"}' '/set regex (' Hello '/save d.json' |
    succeeds chat linear --template chatml -n 3 -q --temp 1
  grep -qF '/set grammar: grammar, line 1, column 11: expected )' stderr && grep -qF '/set json_schema: JSON schema: minimum: expected a number' stderr &&
    grep -qF '/set regex: regular expression, column 1: this parenthesis is not closed' stderr || fail "$(cat stderr)"
  [ "$(answers d.json 2 | tr -d z)" = '' ] || fail 'a mistake changes nothing'
}
it_takes_another_system_text() {
  printf '%s\n' '/system Be brief.' 'Hello there' /system '/save c.json' | succeeds chat ar --template chatml -n 9 -q
  [ "$(tail -1 stdout)" = 'Be brief.' ] || fail 'the system text is not shown'
  grep -q '"content":.*"Be brief\."' c.json || fail 'the system text is not saved'
  "$dtrun" ar --template chatml --system 'Be brief.' -p 'Hello there' -n 9 -q >expected || fail ar
  [ "$(answers c.json 2)" = "$(cat expected)" ] || fail 'not the answer with that system text'
  printf '%s\n' '/system Be brief.' 'Hello there' '/save d.json' | succeeds chat ar --template mistral -n 2 -q
  says_in_one_line 'this chat template does not support a system message'
  [ "$(answers d.json)" -eq 2 ] || fail 'a system text that was refused'
}
it_forgets_under_both_names_and_ends_under_all() {
  printf '%s\n' 'Hello there' /clear '/save a.json' 'Hello there' /reset '/save b.json' | succeeds chat ar --template chatml -n 2 -q
  [ "$(answers a.json)$(answers b.json)" = 00 ] || fail 'not forgotten'
  for word in /exit /bye /quit; do
    printf '%s\n' $word 'Hello there' | succeeds chat ar --template chatml -n 2 -q
    [ -s stdout ] && fail "$word does not end it"
  done
  printf '/?\n' | succeeds chat ar --template chatml -q
  grep -q '^/set NAME VALUE' stdout || fail '/? is no help'
}
it_saves_whole_or_not_at_all() {
  echo kept >there.json
  printf '%s\n' 'Hello there' '/save there.json' | succeeds chat ar --template chatml -n 2 -q
  says_in_one_line '/save there.json: the file exists: name another file, or remove it first'
  [ "$(cat there.json)" = kept ] || fail 'a file that was there is another one'
  printf '%s\n' 'Hello there' '/save full.json' >typed
  (ulimit -f 0 && exec "$dtrun" chat ar --template chatml -n 2 -q <typed 2>&1 >/dev/null) | grep -q '/save full.json: File too large' ||
    fail 'a full disk is not told'
  [ -z "$(find . -name "*full.json*")" ] || fail "something is left of a file that does not fit: $(ls)"
}

# ---- at a terminal

keys() { tmux -u -S socket send-keys "$@" || fail 'tmux send-keys'; }
# begins COMMAND: starts it at a terminal of its own
begins() {
  trap 'tmux -S socket kill-server 2>/dev/null' EXIT
  tmux -u -S socket -f /dev/null new-session -d -x 150 -y 50 "export XDG_STATE_HOME='$PWD/state'; $1" || fail 'tmux new-session'
}
screen() { tmux -u -S socket capture-pane -p -S -; }
# sees PATTERN: a line that matches appears on the screen in time
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
  begins "'$dtrun' chat ar --template chatml -n 24 --ignore-eos; echo left with \$?; cat"
  sees 'mini-target under ar, chat template chatml; /help lists commands'
  keys 'Hello there' Enter
  sees 'Mountaine'
  sees '^[0-9]+ tokens/s(, [0-9]+\.[0-9]x)? *$'
  keys '/stats on' Enter 'What is it?' Enter # two turns
  sees '24 tokens, .* [0-9]+ of [0-9]+ prompt tokens cached; time: '
  keys '/policy ./slow.lua' Enter '/stats' Enter
  sees '2 answers, 48 tokens, .* tokens of context used'
  keys 'And now?' Enter
  sees slowly
  keys C-c # ends the answer, not the program
  sees '\(interrupted\)'
  keys '/stats' Enter
  sees '3 answers, '
  keys 'a line that is not sent'
  sees 'not sent'
  keys C-c # drops the line being typed
  keys '/policy linear' Enter '/policy' Enter
  sees '/policy: the policy is linear'
  keys 'More' Enter
  sees '24 tokens, .* drafted accepted, [0-9]+ of [0-9]+ prompt tokens cached'
  keys '/nonsense' Enter
  sees 'no command /nonsense: /help lists them'
  keys '/save c.json' Enter '/quit' Enter
  sees 'left with 0'
  [ "$(answers c.json)" -eq 8 ] || fail 'expected four questions and their answers'
  [ "$(answers c.json 5)" = 'And now?' ] && [ "$(answers c.json 7)" = 'More' ] || fail 'the conversation'
}
it_dims_reasoning() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  local thinks='/set grammar root ::= "<think>\n" "ab cd" "\n</think>\n\n" "ef gh"'
  begins "'$dtrun' chat ar --template chatml -n 60; echo left with \$?; cat"
  sees '^>'
  keys -l "$thinks"
  keys Enter 'Hello' Enter
  sees '^ef gh'
  grep -qx 'ab cd' screen.txt && ! grep -qE '^</?think>' screen.txt || fail "$(cat screen.txt)"
  tmux -u -S socket capture-pane -e -p -S - | grep -qE $'^\e\\[2mab cd' || fail 'reasoning that is not dim'
  [ "$(grep -A 2 -x 'ab cd' screen.txt | tr -d '\n')" = 'ab cdef gh' ] || fail 'no blank line between'
  keys '/save c.json' Enter /quit Enter
  sees 'left with 0'
  [ "$(answers c.json 2)" = 'ef gh' ] && grep -q '"reasoning_content":[[:space:]]*"ab cd"' c.json || fail 'saved without its reasoning'
  printf '%s\n' "$thinks" 'Hello' | succeeds chat ar --template chatml -n 60 -q
  [ "$(cat stdout)" = $'<think>\nab cd\n</think>\n\nef gh' ] || fail 'through a pipe it is another text'
}
it_says_that_the_usual_limit_cut_an_answer() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  begins "'$dtrun' chat ar --template chatml --ignore-eos; cat"
  sees '^>'
  keys 'Hello' Enter
  sees '^[0-9]+ tokens/s.*; cut at 512 tokens: /set tokens 2048 allows more'
  keys '/stats' Enter
  sees '1 answer, 512 tokens'
  keys '/reset' Enter '/set tokens 512' Enter 'Hello' Enter
  sees '^[0-9]+ tokens/s[^;]*$' # the same answer with a limit that the user chose
}
it_says_nothing_of_the_limit_where_an_answer_ends_before() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  begins "'$dtrun' chat ar --template chatml --regex '[ab]{9}'; cat"
  sees '^>'
  keys 'Hello' Enter
  sees '^[0-9]+ tokens/s[^;]*$'
}
it_ends_with_ctrl_d() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  begins "'$dtrun' chat ar --template chatml; echo left with \$?; cat"
  sees '^>'
  keys 'no question'
  sees '^> no question'
  keys C-c # drops the line
  sees '^> no question\^C'
  keys C-d
  sees 'left with 0'
}
it_edits_lines_and_remembers_them() {
  command -v tmux >/dev/null || { echo '  skipped: no tmux'; return 0; }
  ldd "$dtrun" | grep -q libedit || { echo '  skipped: built without libedit'; return 0; }
  local chat="'$dtrun' chat ar --template chatml -n 3"
  begins "$chat; echo left with \$?; $chat; echo and left with \$?; cat"
  sees '^>'
  keys 'Hallo there' Home Right Delete e C-e ' you' Enter # in the middle, and at the end
  sees '^> Hello there you$'
  keys '"""' Enter
  sees '^\.\.\.'
  keys 'Grüße 你好' BSpace '吗' Enter '"""' Enter '/save c.json' Enter /exit Enter
  sees 'left with 0'
  [ "$(answers c.json 1)" = 'Hello there you' ] || fail "edited: $(answers c.json 1)"
  [ "$(answers c.json 3)" = 'Grüße 你吗' ] || fail "several lines: $(answers c.json 3)"
  [ "$(stat -c %a state/dtrun/chat_history)" = 600 ] || fail 'a history that others may read'
  keys Up Up # the second session remembers: /exit, /save c.json
  sees '^> /save c.json$'
  keys Enter
  sees 'c.json exists: replace it\? \[y/N\]'
  keys n Enter
  keys C-r Hello Escape C-e '?' Enter # searches the history
  sees '^> Hello there you\?$'
  keys '/save c.json' Enter y Enter /exit Enter
  sees 'and left with 0'
  [ "$(answers c.json 1)" = 'Hello there you?' ] || fail 'not replaced, though y was typed'
}

run_tests
