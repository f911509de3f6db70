#!/usr/bin/env bash
# dtrun serve, with curl: texts equal those of the command line; refusals, keys, clients that leave, policies in requests, shutdown.
. "$(dirname "$0")/helpers.sh"
[ -x "$(dirname "$dtrun")/dtrun-serve" ] || { echo 'skipped: built without libmicrohttpd (libmicrohttpd-dev)'; exit 77; }
command -v curl >/dev/null || { echo 'skipped: no curl'; exit 77; }
dark='It was a dark night, and'

# serve ARGUMENTS...: starts a server in the background, at $url
serve() {
  [ -z "${server:-}" ] || kill "$server"
  rm -f port
  "$dtrun" serve --port 0 --port-file port -t 1 "$@" >served 2>server.log &
  server=$!
  trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT
  wait_for -s port
  url=http://127.0.0.1:$(<port)
  for _ in $(seq 1500); do
    [ "$(curl -s -o /dev/null -w '%{http_code}' "$url/health")" = 200 ] && return
    sleep 0.02
  done
  fail "no server: $(<server.log)"
}
wait_for() {
  for _ in $(seq 1500); do
    test "$@" && return
    sleep 0.02
  done
  fail "waited in vain for: $*"
}
# post ROUTE BODY [CURL'S ARGUMENTS]: the answer in `answer`, its status in $code
post() {
  code=$(curl -sN -o answer -w '%{http_code}' "$url$1" -d "$2" "${@:3}")
}
gets() {
  post "$@"
  [ "$code" = 200 ] || fail "$2: status $code, $(<answer)"
}
# value EXPRESSION: prints the value of a Lua expression in which `a` is the answer
value() {
  cat >value.lua <<'LUA'
local dt = require "dt"
local a = dt.json.decode(assert(io.open("answer")):read "a")
io.write(tostring(load("local a = ... return " .. arg[1])(a)))
LUA
  "$dtrun" run ./value.lua "$1"
}
# joined [KIND]: prints the text of a stream's events in `answer`; in a chat, KIND may be reasoning_content
joined() {
  cat >joined.lua <<'LUA'
local dt = require "dt"
for line in io.lines "answer" do
  local json = line:match "^data: ({.*)"
  local choice = json and dt.json.decode(json).choices[1]
  local text = choice and (choice.text or choice.delta and choice.delta[arg[1]])
  if type(text) == "string" then io.write(text) end
end
LUA
  "$dtrun" run ./joined.lua "${1:-content}"
}
count() { curl -s "$url/metrics" | sed -n "s/^$1 //p"; }
# reaches COUNTER NUMBER: the counter has this value within some seconds
reaches() {
  for _ in $(seq 250); do
    [ "$(count "$1")" = "$2" ] && return
    sleep 0.02
  done
  fail "$1 is $(count "$1"), expected $2"
}

it_gives_the_texts_of_the_command_line() {
  serve
  local policy
  for policy in ar linear rate cast suffix; do
    gets /v1/completions '{"prompt": "'"$dark"'", "max_tokens": 30, "dtrun": {"policy": "'$policy'"}}'
    value a.choices[1].text >here
    "$dtrun" $policy -q -t 1 -p "$dark" -n 30 >there
    same_text here there
    gets /v1/completions '{"prompt": "'"$dark"'", "max_tokens": 30, "temperature": 0.8, "seed": 7, "presence_penalty": 1, "stream": true,
      "dtrun": {"policy": "'$policy'"}}'
    joined >here
    "$dtrun" $policy -q -t 1 -p "$dark" -n 30 --temp 0.8 -s 7 --presence-penalty 1 >there
    same_text here there
    tail -n 2 answer | grep -qx 'data: \[DONE\]' || fail 'no last event'
  done
}
it_gives_the_answers_of_a_chat() {
  serve --template chatml
  gets /v1/chat/completions '{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "The dog?"}]}],
    "max_completion_tokens": 25, "model": "any", "user": "me", "top_p": 1, "stop": null}'
  value a.choices[1].message.content >here
  "$dtrun" -q -t 1 --chat --template chatml --system 'Be brief.' -p 'The dog?' -n 25 >there
  same_text here there
  [ "$(value a.choices[1].message.role,a.object)" = assistant ] || fail 'role'
  gets /v1/chat/completions '{"messages": [{"role": "user", "content": "The dog?"}], "max_tokens": 5, "tools": [], "tool_choice": "auto", "parallel_tool_calls": true}'
  refused 400 invalid_request_error '^tools' '{"messages": [{"role": "user", "content": "a"}], "tools": [{}]}' /v1/chat/completions
  refused 400 invalid_request_error '^tool_choice' '{"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"}' /v1/chat/completions
  gets /chat/completions '{"messages": [{"role": "user", "content": "The dog?"}], "max_tokens": 5, "stream": true, "stream_options": {"include_usage": true}}'
  head -n 1 answer | grep -q '"delta":{"role":"assistant","content":null}' || fail 'the first delta'
  grep -q '"choices":\[\],"usage":{"prompt_tokens":' answer || fail 'usage'
  grep -q '"delta":{},"logprobs":null,"finish_reason":"length"' answer || fail 'the last delta'
}
it_separates_reasoning_from_content() {
  serve --template chatml
  local asked='"messages": [{"role": "user", "content": "The dog?"}], "max_tokens": 60' form
  local thinks=$asked', "grammar": "root ::= \"<think>\\n\" [a-f]{8} \" \" [a-f]{8} \"\\n</think>\\n\\n\" [x-z]{5}"'
  for form in '' ', "reasoning_format": "auto"' ', "reasoning_format": "deepseek"'; do
    gets /v1/chat/completions "{$thinks$form}"
    [[ $(value a.choices[1].message.content) =~ ^[x-z]{5}$ ]] || fail "contents: $(<answer)"
    [[ $(value a.choices[1].message.reasoning_content) =~ ^[a-f]{8}' '[a-f]{8}$ ]] || fail "reasoning: $(<answer)"
  done
  value a.choices[1].message.reasoning_content >reasoning
  value a.choices[1].message.content >contents
  gets /v1/chat/completions "{$thinks, \"stream\": true, \"logprobs\": true}"
  joined reasoning_content >here
  same_text reasoning here
  joined >here
  same_text contents here
  gets /v1/chat/completions "{$thinks, \"reasoning_format\": \"none\"}"
  [ "$(value a.choices[1].message.reasoning_content)" = nil ] || fail "reasoning apart: $(<answer)"
  printf '<think>\n%s\n</think>\n\n%s' "$(<reasoning)" "$(<contents)" >there
  value a.choices[1].message.content >here
  same_text there here
  gets /v1/chat/completions "{$thinks, \"reasoning_format\": \"none\", \"stream\": true}"
  joined >here
  same_text there here
  refused 400 invalid_request_error '^reasoning_format: expected auto, deepseek or none' "{$asked, \"reasoning_format\": \"x\"}" /v1/chat/completions
  refused 400 invalid_request_error '^reasoning_format: expected' "{$asked, \"reasoning_format\": true}" /v1/chat/completions
  refused 400 invalid_request_error '^reasoning_format: unknown field' '{"prompt": "a", "reasoning_format": "none"}'
}
# The marks are those of the template. No model here reasons, so a grammar writes them.
it_separates_reasoning_by_the_marks_of_the_template() {
  local layout begin end
  while read -r layout begin end; do
    serve --template "$layout"
    gets /v1/chat/completions '{"messages": [{"role": "user", "content": "The dog?"}], "max_tokens": 90,
      "grammar": "root ::= \"'"$begin"'\" [a-f]{8} \"'"$end"'\" [x-z]{5}"}'
    [[ $(value a.choices[1].message.content) =~ ^[x-z]{5}$ ]] || fail "$layout: contents: $(<answer)"
    [[ $(value a.choices[1].message.reasoning_content) =~ ^[a-f]{8}$ ]] || fail "$layout: reasoning: $(<answer)"
  done <<'LAYOUTS'
smollm3 <think>\\n \\n</think>\\n\\n
glm4.5 <think> </think>\\n
gemma4 <|channel>thought\\n \\n<channel|>
harmony <|channel|>analysis<|message|> <|end|><|start|>assistant<|channel|>final<|message|>
LAYOUTS
}
it_begins_in_reasoning_where_the_template_does() {
  serve --template deepseek-r1
  local asked='"messages": [{"role": "user", "content": "The dog?"}], "max_tokens": 9'
  gets /v1/chat/completions "{$asked, \"reasoning_format\": \"none\"}"
  value a.choices[1].message.content >there
  gets /v1/chat/completions "{$asked}"
  [ "$(value a.choices[1].message.content)" = '' ] || fail "contents: $(<answer)"
  [ "$(value a.choices[1].message.reasoning_content)" = "$(tr '\n' ' ' <there | sed 's/^ *//')" ] || fail "reasoning: $(<answer)"
  gets /v1/chat/completions "{$asked, \"json_schema\": {\"enum\": [\"yes\"]}}"
  [ "$(value a.choices[1].message.content)" = '"yes"' ] || fail "a text held to a schema: $(<answer)"
}
it_tells_log_probabilities() {
  serve
  gets /v1/completions '{"prompt": "'"$dark"'", "max_tokens": 3, "logprobs": 2, "echo": true}'
  "$dtrun" -q -t 1 -p "$dark" -n 3 --logprobs 2 --echo --json there >/dev/null
  cat >same.lua <<'LUA'
local dt = require "dt"
local function read(name) return dt.json.decode(assert(io.open(name)):read "a") end
local here, there = read "answer".choices[1].logprobs, read "there"
local n, listed = 0, there.prompt_logprobs
for _, l in ipairs(there.logprobs) do listed[#listed + 1] = l end
for i = 2, #listed do
  assert(math.abs(here.token_logprobs[i] - listed[i].logprob) < 1e-6, i)
  n = n + 1
end
assert(n == there.prompt_tokens - 1 + 3 and here.text_offset[1] == 0)
LUA
  "$dtrun" run ./same.lua || fail 'other log-probabilities'
  serve --template chatml
  gets /v1/chat/completions '{"messages": [{"role": "user", "content": "A"}], "max_tokens": 2, "logprobs": true, "top_logprobs": 3}'
  [ "$(value '#a.choices[1].logprobs.content[2].top_logprobs')" = 3 ] || fail 'top_logprobs'
}
it_holds_texts_to_what_requests_say() {
  serve
  gets /v1/completions '{"prompt": ["A", "B"], "n": 3, "temperature": 1, "max_tokens": 4, "seed": 1}'
  [ "$(value '#a.choices, a.usage.completion_tokens')" = 6 ] || fail 'n'
  [ "$(value 'a.choices[1].text == a.choices[2].text')" = false ] || fail 'answers are the same'
  gets /v1/completions '{"prompt": "'"$dark"'", "max_tokens": 40, "stop": [" little"]}'
  [ "$(value 'a.choices[1].finish_reason')$(value 'a.choices[1].text')" = 'stop it was a' ] || fail 'stop'
  gets /v1/completions '{"prompt": "'"$dark"'", "max_tokens": 4, "logit_bias": [[" it", false], [" was", -50]]}'
  [[ "$(value 'a.choices[1].text')" != *' it'* ]] || fail 'logit_bias'
  gets /v1/completions '{"prompt": "A", "max_tokens": 60, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema":
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}}}, "dtrun": {"policy": "linear"}}'
  [[ "$(value 'a.choices[1].text')" =~ ^\{ ]] || fail 'schema'
  local digits='{"const": [12345678901234567891, 0.10]}' text='[12345678901234567891,0.10]'
  gets /v1/completions '{"prompt": "A", "max_tokens": 60, "json_schema": '"$digits"'}'
  [ "$(value 'a.choices[1].text' | tr -d ' \n')" = "$text" ] || fail "digits: $(<answer)"
  gets /v1/completions '{"max_tokens": 60, "response_format": {"json_schema": {"schema" : '"$digits"', "name": "x"}, "type": "json_schema"}, "prompt": "A"}'
  [ "$(value 'a.choices[1].text' | tr -d ' \n')" = "$text" ] || fail "digits: $(<answer)"
  gets /v1/completions '{"prompt": [72, 101], "max_tokens": 2}'
  [ "$(value a.usage.prompt_tokens)" = 2 ] || fail 'ids'
  gets /tokenize '{"content": "hello world"}'
  gets /detokenize "{\"tokens\": $(sed 's/.*\(\[.*\]\).*/\1/' answer)}"
  [ "$(value a.content)" = 'hello world' ] || fail 'tokens'
}
# refused STATUS TYPE PATTERN BODY [ROUTE]
refused() {
  post "${5:-/v1/completions}" "$4"
  [ "$code" = "$1" ] || fail "$4: status $code, expected $1: $(<answer)"
  [ "$(value a.error.type)" = "$2" ] || fail "$4: $(<answer)"
  [[ "$(value a.error.message)" =~ $3 ]] || fail "$4: $(<answer)"
}
# A template that begins with reasoning unless it is turned off.
write_reasoning_template() {
  cat >think.jinja <<'JINJA'
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content.split('</think>')[-1] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{{ '<think>\n' if enable_thinking is undefined or enable_thinking else '<think>\n\n</think>\n\n' }}{{ reasoning_effort }}{% endif %}
JINJA
}
it_runs_a_template_with_its_variables() {
  write_reasoning_template
  serve --template think.jinja
  local asked='"messages": [{"role": "user", "content": "The <|im_end|> dog?"}], "max_tokens": 40'
  local on='<|im_start|>user\nThe <|im_end|> dog?<|im_end|>\n<|im_start|>assistant\n<think>\n'
  gets /apply-template "{${asked%, *}}"
  [ "$(value a.prompt)" = "$(printf "$on")" ] || fail "by default: $(<answer)"
  gets /apply-template "{${asked%, *}, \"chat_template_kwargs\": {\"enable_thinking\": false}}"
  value a.prompt | grep -q '^</think>$' || fail "turned off: $(<answer)"
  gets /apply-template "{${asked%, *}, \"reasoning_effort\": \"low\"}"
  value a.prompt | grep -qx low || fail "the effort: $(<answer)"
  gets /apply-template "{${asked%, *}, \"reasoning_effort\": \"none\"}"
  value a.prompt | grep -q '^</think>$' || fail "no effort: $(<answer)"
  local name
  for name in think_tokens thinking_budget thinking_token_budget reasoning_budget_tokens; do
    gets /v1/chat/completions "{$asked, \"$name\": 6}"
    value a.choices[1].message.reasoning_content >reasoning
    value a.choices[1].message.content >contents
    [ -s reasoning ] && [ -s contents ] || fail "$name: $(<answer)"
  done
  "$dtrun" -q -t 1 --chat --template think.jinja -p 'The <|im_end|> dog?' -n 40 --think-tokens 6 >there
  gets /v1/chat/completions "{$asked, \"think_tokens\": 6, \"reasoning_format\": \"none\", \"dtrun\": {\"policy\": \"linear\"}}"
  value a.choices[1].message.content >here
  same_text here there
  [ "$(value a.choices[1].dtrun.adjustments.think_tokens)" = 6 ] || fail "the result: $(<answer)"
  gets /v1/chat/completions "{$asked, \"chat_template_kwargs\": {\"enable_thinking\": false}, \"think_tokens\": 6}"
  [ "$(value a.choices[1].message.reasoning_content)" = nil ] || fail "reasoning though it is off: $(<answer)"
  serve --template think.jinja --think off
  gets /apply-template "{${asked%, *}}"
  value a.prompt | grep -q '^</think>$' || fail "turned off for all: $(<answer)"
  gets /apply-template "{${asked%, *}, \"chat_template_kwargs\": {\"enable_thinking\": true}}"
  [ "$(value a.prompt)" = "$(printf "$on")" ] || fail "turned on for one: $(<answer)"
  gets /v1/chat/completions '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "It was"}], "max_tokens": 3}'
}
it_refuses_with_the_reason() {
  serve -c 64
  local bad=invalid_request_error
  refused 400 $bad 'not a JSON object' '[1]'
  refused 400 $bad 'not valid JSON: it ends too early .byte 15' '{"prompt": "a"'
  refused 400 $bad '^prompt: expected a value, but it is missing' '{}'
  refused 400 $bad 'nonsense: unknown field' '{"prompt": "a", "nonsense": 1}'
  refused 400 $bad 'messages: unknown field' '{"prompt": "a", "messages": []}'
  refused 400 $bad '^temperature: expected a number' '{"prompt": "a", "temperature": "warm"}'
  refused 400 $bad '^max_tokens: expected at least 1' '{"prompt": "a", "max_tokens": 0}'
  refused 400 $bad '^max_tokens: ' '{"prompt": "a", "max_tokens": 1.5}'
  refused 400 $bad '^stop: expected a text that is not empty' '{"prompt": "a", "stop": ""}'
  refused 400 $bad '^logit_bias' '{"prompt": "a", "logit_bias": {"no such token": 1}}'
  refused 400 $bad 'grammar' '{"prompt": "a", "grammar": "root ::= ("}'
  refused 400 $bad 'give only one of them' '{"prompt": "a", "grammar": "root ::= [a]", "response_format": {"type": "json_object"}}'
  refused 400 $bad 'frob' '{"prompt": "a", "json_schema": {"frob": 1}, "strict_schema": true}'
  refused 400 exceed_context_size_error 'at most 63 leave room' "{\"prompt\": [$(seq -s, 1 64)]}"
  refused 400 $bad '^prompt.0.: expected a whole number from 0 to 4095' '{"prompt": [99999999]}'
  refused 400 $bad 'no chat template' '{"messages": [{"role": "user", "content": "a"}]}' /v1/chat/completions
  refused 400 $bad '^suffix' '{"prompt": "a", "suffix": "b"}'
  refused 400 $bad '^suffix' '{"prompt": "a", "suffix": "auto"}'
  gets /v1/completions '{"prompt": "a", "suffix": "", "max_tokens": 1}'
  refused 400 $bad '^stop: it is given twice' '{"prompt": "a", "stop": "x", "n": 1, "stop": null}'
  refused 400 $bad '^prompt: it is given twice' '{"prompt": "a", "prompt": "a"}'
  refused 400 $bad '^dtrun.policy: it is given twice' '{"prompt": "a", "dtrun": {"policy": "ar", "policy": "ar"}}'
  refused 400 $bad '^dtrun.params.K: it is given twice' '{"prompt": "a", "dtrun": {"policy": "linear", "params": {"K": 1, "K": 1}}}'
  refused 400 $bad '^cache_prompt: expected true or false' '{"prompt": "a", "cache_prompt": 1}'
  refused 404 not_found_error '/v1/nothing' '{}' /v1/nothing
  local route # each API has its own form of errors
  for route in /api/nothing /api/chat/more; do
    curl -s "$url$route" -d '{}' >answer
    grep -qx '{"error":"unknown route: '$route'"}' answer || fail "$route: $(cat answer)"
  done
  for route in /v1/messages/nothing /messages/nothing; do
    curl -s "$url$route" -d '{}' >answer
    grep -qE '^\{"type":"error","error":\{"type":"not_found_error","message":"unknown route' answer || fail "$route: $(cat answer)"
  done
  refused 405 $bad 'takes GET' '{}' /v1/models
  refused 400 $bad "no policy 'nonsense'" '{"prompt": "a", "dtrun": {"policy": "nonsense"}}'
  refused 400 $bad 'name of an installed policy' '{"prompt": "a", "dtrun": {"policy": "/etc/passwd"}}'
  refused 400 $bad 'name of an installed policy' '{"prompt": "a", "dtrun": {"policy": "x.lua"}}'
  refused 400 $bad 'K = 99999' '{"prompt": "a", "dtrun": {"policy": "linear", "params": {"K": 99999}}}'
  refused 400 $bad 'expected policy' '{"prompt": "a", "dtrun": {"polcy": "linear"}}'
  refused 400 $bad '^dtrun.trace: expected' '{"prompt": "a", "dtrun": {"trace": 1}}'
  post /v1/completions '{"prompt": "a", "max_tokens": 1}'
  [ "$code" = 200 ] || fail 'it goes on'
}
# bound FIELD VALUE REASON VALUE..: the first value is refused with the reason, the others are accepted
bound() {
  local begin='{"max_tokens": 1, "'$1'": '
  [ "$1" = prompt ] || begin='{"prompt": "a", '${begin#?}
  [ "$1" = temperature ] || begin='{"temperature": 1, '${begin#?}
  refused 400 invalid_request_error "$3" "$begin$2}"
  for _ in "${@:4}"; do
    gets /v1/completions "$begin$4}"
    shift
  done
}
list() { printf '[%s]' "$(seq -s, "$1" | sed "s/[0-9]\+/$2/g")"; } # list N ITEM
it_has_the_bounds_that_it_states() {
  serve
  local params
  bound n 129 'at most 128' 128 127
  bound prompt "$(list 129 '"a"')" 'at most 128 prompts' "$(list 128 '"a"')" "$(list 127 '"a"')"
  refused 400 invalid_request_error 'at most 128 answers' '{"prompt": ["a", "b", "c"], "n": 43, "temperature": 1, "max_tokens": 1}'
  gets /v1/completions '{"prompt": ["a", "b"], "n": 64, "temperature": 1, "max_tokens": 1}'
  bound stop "$(list 65 '"q"')" 'at most 64' "$(list 64 '"q"')" "$(list 63 '"q"')"
  bound logprobs 21 'out of range' 20 19
  bound seed 18446744073709551616 'of 64 bits' 18446744073709551615 18446744073709551614
  bound seed -9223372036854775809 'of 64 bits' -9223372036854775808 -9223372036854775807
  bound temperature 100.001 'out of range' 100 99.999
  bound temperature -0.001 'out of range' 0 0.5
  bound top_p 1.001 'out of range' 1 0.999
  bound top_p -0.001 'out of range' 0 0.001
  bound min_p 1.001 'out of range' 1 0.999
  bound min_p -0.001 'out of range' 0 0.001
  for params in presence_penalty frequency_penalty; do
    bound $params 100.001 'out of range' 100 99.999
    bound $params -100.001 'out of range' -100 -99.999
  done
  bound repetition_penalty 100.001 'out of range' 100 99.999
  bound repetition_penalty 0.0099 'out of range' 0.01 0.011
  bound min_tokens -1 'out of range' 0 1
  bound thinking_budget -2 'out of range' -1 0 5
  params='{"source": "local P = require(\"dt.policy\").define {name = \"mine\", doc = \"d\", params = {'
  params+=$(seq -s, 64 | sed 's/[0-9]\+/{[[p&]], 1, min = 0, max = 9, doc = [[d]]}/g')'}} function P:draft() end return P", "params": '
  bound dtrun "$params{$(seq -s, 65 | sed 's/[0-9]\+/"p&": 2/g')}}" 'an object of at most 64' \
    "$params{$(seq -s, 64 | sed 's/[0-9]\+/"p&": 2/g')}}" "$params{$(seq -s, 63 | sed 's/[0-9]\+/"p&": 2/g')}}"
  { printf '{"prompt": "a", "max_tokens": 1}' && head -c 8388575 /dev/zero | tr '\0' ' '; } >long
  [ "$(wc -c <long)" -eq 8388607 ] || fail 'the body has another length'
  for _ in 1 2; do
    post /v1/completions @long
    [ "$code" = 200 ] || fail "a body of $(wc -c <long) bytes: $code"
    printf ' ' >>long
  done
  post /v1/completions @long
  [ "$code" = 413 ] || fail "a body of 8 MiB and a byte: $code"
}
it_runs_a_policy_of_the_request() {
  serve
  policy() { echo 'local P = require(\"dt.policy\").define {name = \"mine\", doc = \"d\"} function P:draft(tree) '"$1"' end return P'; }
  with() { echo '{"prompt": "'"$dark"'", "max_tokens": 20, "dtrun": {"source": "'"$(policy "$1")"'"}}'; }
  gets /v1/completions "$(with 'tree:draft_step(tree.root) tree:branch(tree.root, 2)')"
  value a.choices[1].text >here
  [ "$(value a.choices[1].dtrun.policy)" = mine ] || fail "not told: $(<answer)"
  "$dtrun" ar -q -t 1 -p "$dark" -n 20 >there
  same_text here there
  refused 400 invalid_request_error 'policy.lua:1: oops' "$(with 'error(\"oops\")')"
  refused 400 invalid_request_error 'ran longer than 0.02 s' "$(with 'while true do end')"
  refused 400 invalid_request_error 'ran longer than 0.02 s' "$(with 'end function P:init() while true do end')"
  refused 400 invalid_request_error 'io' "$(with 'io.open(\"/etc/passwd\")')"
  gets /v1/policies/check '{"source": "return 1 +"}'
  [ "$(value a.error.line)" = 1 ] || fail "$(<answer)"
  gets /v1/policies/check "{\"source\": \"$(policy '')\"}"
  [ "$(value a.name)" = mine ] || fail "$(<answer)"
  [ "$(grep -cvE 'serving|^dtrun: POST /v1/completions 400 in' server.log)" = 0 ] || fail "it prints: $(<server.log)"
}
it_traces_iterations_as_a_file_of_the_command_line_does() {
  serve
  "$dtrun" linear -q -t 1 -p "$dark" -n 20 --trace there.jsonl >/dev/null
  cat >same.lua <<'LUA'
local dt = require "dt"
local function plain(line)
  line.ms, line.total_ms = nil, nil
  return dt.json.encode(line)
end
local there, here = {}, {}
for line in io.lines "there.jsonl" do there[#there + 1] = plain(dt.json.decode(line)) end
for line in io.lines "answer" do
  local json = line:match "^data: ({.*)" or line:match "^{.*"
  local choice = json and dt.json.decode(json).choices[1]
  for _, l in ipairs(choice and choice.dtrun and choice.dtrun.trace or {}) do here[#here + 1] = plain(l) end
end
assert(#there > 5 and #here == #there, #here)
for i, line in ipairs(there) do assert(here[i] == line, here[i]) end
LUA
  local stream
  for stream in true false; do
    gets /v1/completions '{"prompt": "'"$dark"'", "max_tokens": 20, "dtrun": {"policy": "linear", "trace": true}, "stream": '$stream'}'
    "$dtrun" run ./same.lua || fail "another trace, stream $stream"
  done
  gets /v1/completions '{"prompt": ["A", "B"], "max_tokens": 4, "dtrun": {"trace": true}}'
  [ "$(value '#a.choices[1].dtrun.trace > 2 and a.choices[2].dtrun.trace[1].prompt')" = B ] || fail "$(<answer)"
}
it_names_its_model() {
  serve
  local address
  for address in /v1/models/mini-target /models/any/name; do
    [ "$(curl -s -o answer -w '%{http_code}' "$url$address")" = 200 ] || fail "$address: $(<answer)"
    [ "$(value 'a.id .. " " .. a.object')" = 'mini-target model' ] || fail "$address: $(<answer)"
  done
  [ "$(curl -s -o answer -w '%{http_code}' "$url/v1/models/")" = 404 ] || fail 'a model without a name'
}
it_lists_policies() {
  serve
  code=$(curl -s -o answer -w '%{http_code}' "$url/v1/policies")
  cat >told.lua <<'LUA'
local dt = require "dt"
local n = 0
for _, p in ipairs(dt.json.decode(assert(io.open "answer"):read "a").policies) do
  assert(not p.error and #p.doc > 0 and #p.source > 100, p.name)
  n = n + 1
  if p.name == "linear" then assert(p.draft == "needed" and p.params[1].name == "K" and p.params[1].min == "1") end
  if p.name == "ar" then assert(p.draft == "none") end
  if p.name == "dynatree" then assert(p.presets[1]) end
end
assert(n == tonumber(arg[1]), n)
LUA
  "$dtrun" run ./told.lua "$(find "$source_dir/policies" -name "*.lua" | wc -l)" || fail 'another list'
}
it_keeps_rows_of_prompts() {
  local a b cached=a.usage.prompt_tokens_details.cached_tokens
  a=$(printf 'The sun was over the hill and the dog was in the water. %.0s' $(seq 8))
  b=$(printf 'Once there was a girl who had a red ball and a blue one. %.0s' $(seq 8))
  body() { echo '{"prompt": "'"$1"'", "max_tokens": 12, "temperature": 0.9, "seed": 3'"${2:-}"'}'; }
  # texts CACHED..: asks with prompts a, b, a, a (the last without the prefix cache), ..; CACHED: whether tokens were cached
  texts() {
    local expected n=0
    for expected in "$@"; do
      n=$((n + 1))
      gets /v1/completions "$(body "$([ $n = 2 ] && echo "$b" || echo "$a")" "$([ $n = 4 ] && echo ', "cache_prompt": false')")"
      [ "$(value "$cached > 50")" = "$expected" ] || fail "prompt $n: $(value "$cached") cached"
      [ "$(value 'a.usage.prompt_tokens == a.timings.cache_n + a.timings.prompt_n')" = true ] || fail "$(<answer)"
      value a.choices[1].text >text$n
    done
    same_text text1 text3
    same_text text1 text4
  }
  serve -np 1
  texts false false true false true
  [ "$(count dtrun:prompt_cache_bytes)" -gt 100000 ] && [ "$(count dtrun:prompt_tokens_cached_total)" -gt 100 ] || fail 'not counted'
  serve -np 1 --cache-ram 0
  texts false false false false
  [ "$(count dtrun:prompt_cache_bytes)" = 0 ] || fail "it caches $(count dtrun:prompt_cache_bytes) bytes"
  gets /v1/completions "$(body "$a")"
  [ "$(value $cached)" = 0 ] || fail 'rows of a request that leaves none'
  gets /v1/completions "$(body "$a and")"
  [ "$(value "$cached > 50")" = true ] || fail 'rows of its own place'
}
it_asks_for_its_key() {
  serve --api-key secret
  local route
  [ "$(curl -s -o answer -w '%{http_code}' "$url/v1/models")" = 200 ] || fail 'models are public'
  for route in /v1/completions /v1/chat/completions /tokenize /detokenize /apply-template /v1/policies/check; do
    refused 401 authentication_error 'the key is missing or wrong' '{"prompt": "a"}' $route
  done
  for route in /metrics /props /v1/policies; do
    [ "$(curl -s -o answer -w '%{http_code}' "$url$route")" = 401 ] || fail "$route without a key"
  done
  post /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'Authorization: Bearer secre'
  [ "$code" = 401 ] || fail 'a part of the key'
  post /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'Authorization: Bearer secretsecret'
  [ "$code" = 401 ] || fail 'the key twice'
  gets /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'Authorization: Bearer secret'
  gets /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'X-Api-Key: secret'
  head -c 8388609 /dev/zero >long
  post /v1/completions @long
  [ "$code" = 401 ] || fail "a long body without a key: $code"
}
it_refuses_pages_of_other_sites() {
  serve
  post /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'Origin: http://evil.example'
  [ "$code" = 403 ] || fail "a foreign Origin: $code"
  post /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'Host: evil.example'
  [ "$code" = 403 ] || fail "a foreign Host: $code"
  post /v1/completions '{"prompt": "a", "max_tokens": 1}' -H 'Host: localhost.evil.example'
  [ "$code" = 403 ] || fail "a foreign Host that begins well: $code"
  gets /v1/completions '{"prompt": "a", "max_tokens": 1}' -H "Host: localhost:$(<port)" -H "Origin: http://localhost:$(<port)"
}
long='{"prompt": "'$dark'", "max_tokens": 2000, "ignore_eos": true, "n": 64, "temperature": 1'
it_refuses_what_its_queue_has_no_room_for() {
  serve -np 1 --queue 1
  curl -s -o first "$url/v1/completions" -d "$long}" &
  local first=$!
  reaches llamacpp:requests_processing 1
  refused 503 unavailable_error 'the queue is full .1 requests.' '{"prompt": "a", "max_tokens": 1}'
  kill $first
  reaches dtrun:requests_total 1
  gets /v1/completions '{"prompt": "a", "max_tokens": 1}'
}
it_notices_clients_that_have_left() {
  serve -np 2
  local stream
  for stream in true false; do
    curl -s -m 0.5 -o /dev/null "$url/v1/completions" -d "$long, \"stream\": $stream}"
    reaches llamacpp:requests_processing 0
  done
}
it_ends_texts_that_take_too_long() {
  serve -np 1 --timeout 1
  gets /v1/completions "$long}"
  [ "$(value 'a.usage.completion_tokens < 64 * 2000 and #a.choices')" = 64 ] || fail "$(value a.usage.completion_tokens) tokens"
}
it_finishes_what_runs_when_it_is_told_to_end() {
  serve
  curl -sN -o answer "$url/v1/completions" -d '{"prompt": "'"$dark"'", "max_tokens": 2000, "ignore_eos": true, "stream": true}' &
  wait_for -s answer
  kill -TERM $server
  wait $server || fail "exit status $?"
  grep -q '"finish_reason":"length"' answer || fail 'the text was cut'
  tail -n 2 answer | grep -qx 'data: \[DONE\]' || fail 'no last event'
}
it_says_why_it_does_not_begin() {
  refuses 2 'serve does not take --prompt' serve -p x
  refuses 2 'serve does not take --window' serve --window 5
  refuses 2 'serve does not take grammars' serve --grammar 'root ::= "a"'
  refuses 2 'serve does not take grammars' serve --regex a
  refuses 2 '--port is an option of dtrun serve' --port 80 -p x
  refuses 2 '--host .*nowhere' serve --host nowhere.invalid
  refuses 2 "--port '65536': expected a whole number from 0 to 65535" serve --port 65536
  refuses 2 '/nowhere' serve --port 0 -m /nowhere
  refuses 2 "--queue '100001'.*to 100000" serve --queue 100001
  refuses 2 "--timeout '1000001'.*to 1000000" serve --timeout 1000001
  refuses 2 "--cache-ram '1000001'.*to 1000000" serve --cache-ram 1000001
  serve --queue 100000 --timeout 1000000 --cache-ram 1000000
  serve --queue 99999 --timeout 999999 --cache-ram 999999
  serve
  refuses 2 "cannot listen at 127.0.0.1, port $(<port): Address already in use" serve --port "$(<port)"
  cp "$dtrun" alone
  run ./alone serve
  [ "$status" -eq 1 ] || fail "exit status $status"
  says_in_one_line 'install libmicrohttpd-dev'
}

run_tests
