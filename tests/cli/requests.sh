#!/usr/bin/env bash
# dtrun serve: requests as clients send them, from Python.
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
python=${DTRUN_PYTHON:-python3}
command -v "$python" >/dev/null || { echo 'skipped: no python3'; exit 77; }

# asks SCRIPT ARGUMENTS...: runs tests/serve/SCRIPT with the server's URL
asks() { "$python" "$source_dir/tests/serve/$1" "$url" "${@:2}" >said 2>&1 || fail "$(tail -n 3 said)"; }

it_ends_an_answer_at_its_token_and_not_at_the_text_of_that() {
  serve --template zephyr
  asks ends.py text
  mkdir marked && cp "$models"/mini-target/* marked
  sed -i 's#<|padding|>#</s>#' marked/tokenizer.json
  serve --template zephyr -m marked
  asks ends.py token
}
it_takes_requests_as_clients_send_them() {
  serve --template chatml
  asks as_sent.py
}
it_calls_tools() {
  serve --template llama3 -md "$models/mini-draft"
  asks calls.py
}
it_serves_openai_responses_and_anthropic_messages() {
  serve --template llama3 -md "$models/mini-draft"
  asks openai_responses.py
  asks anthropic_messages.py
  serve --template llama3 --api-key secret
  local body='{"input": "a", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}'
  curl -s "$url/v1/messages" -H 'x-api-key: wrong' -d "$body" >answer
  grep -q '^{"type":"error","error":{"type":"authentication_error","message":"the key is missing or wrong' answer || fail "$(<answer)"
  curl -s "$url/v1/responses" -H 'Authorization: Bearer wrong' -d "$body" >answer
  grep -q '^{"error":{"code":401,"message":"the key is missing or wrong.*","type":"authentication_error"}}' answer || fail "$(<answer)"
  curl -s "$url/v1/messages" -H 'x-api-key: secret' -d '{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}' >answer
  grep -q '"stop_reason":"max_tokens"' answer || fail "$(<answer)"
  serve --template deepseek-r1
  asks reasoned.py begins
  serve --template smollm3
  asks reasoned.py variable
}
it_speaks_ollamas_api() {
  serve --template "$source_dir/tests/serve/talkative.jinja"
  asks ollama.py talkative
  serve --template "$source_dir/tests/serve/reasoning.jinja"
  asks ollama.py reasoning
  serve
  asks ollama.py base
}
it_fills_gaps() {
  serve
  asks infill.py none
  cp -r "$models/mini-target" marked && "$python" "$source_dir/tests/serve/infill_model.py" marked
  serve -m marked
  asks infill.py marks
}
it_takes_ignores_or_refuses_each_field_of_the_published_schemas() {
  serve --template chatml
  asks fields.py "$source_dir/tests/serve/fields.txt" "$source_dir"
}
it_refuses_texts_that_are_none_and_numbers_beyond_their_bounds() {
  serve --template chatml -np 4
  asks extremes.py
}
it_lets_the_pages_ask_that_cors_names() {
  serve --template chatml
  asks pages.py none
  serve --template chatml --cors http://other.example --cors https://app.example:3000
  asks pages.py https://app.example:3000
  serve --template chatml --cors '*' --api-key secret
  [ "$(curl -s -o answer -D headers -w '%{http_code}' "$url/v1/completions" -d '{}' -H 'Origin: https://a.b')" = 401 ] || fail "no key: $(<answer)"
  grep -qi '^access-control-allow-origin: \*' headers || fail "$(<headers)"
  [ "$(curl -s -o answer -X OPTIONS -w '%{http_code}' "$url/v1/completions" -H 'Origin: https://a.b')" = 204 ] || fail 'a preflight needs no key'
  serve --template chatml --cors '*'
  asks pages.py '*'
  local wrong
  for wrong in app.example https://app.example/ 'https://a b' '' ://x; do
    refuses 2 "--cors '.*': expected an origin, such as https" serve --cors "$wrong"
  done
  refuses 2 '--cors is an option of dtrun serve' --cors '*' -p x
  refuses 2 '--served-model-name is an option of dtrun serve' --alias x -p x
}
it_warns_of_strangers() {
  begin() {
    rm -f port
    "$dtrun" serve --port 0 --port-file port -t 1 "$@" 2>server.log &
    local server=$!
    for _ in $(seq 1500); do [ -s port ] && grep -q serving server.log && break || sleep 0.02; done
    kill $server
    wait $server
  }
  begin --host 0.0.0.0
  grep -q '^dtrun: --host 0.0.0.0 without --api-key: ' server.log || fail "$(<server.log)"
  begin --host 0.0.0.0 --api-key x
  grep -q 'without --api-key' server.log && fail "$(<server.log)"
  begin --cors https://app.example
  [ "$(wc -l <server.log)" = 1 ] || fail "$(<server.log)"
  begin --cors '*'
  grep -q "^dtrun: --cors '\*': web pages of any site can use this server" server.log || fail "$(<server.log)"
}
# loud ARGUMENTS..: starts a server whose lines are in server.log
loud() {
  [ -z "${server:-}" ] || kill "$server"
  rm -f port
  "$dtrun" serve --port 0 --port-file port -t 1 "$@" 2>server.log &
  server=$!
  trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT
  for _ in $(seq 1500); do [ -s port ] && grep -q serving server.log && break || sleep 0.02; done
  url=http://127.0.0.1:$(<port)
}
it_says_a_line_for_each_request_that_it_refuses() {
  local good='{"prompt": "a", "max_tokens": 3}'
  line() { # line PATTERN: a line that matches comes within some seconds
    for _ in $(seq 250); do grep -qE "$1" server.log && return || sleep 0.02; done
    fail "no line '$1': $(<server.log)"
  }
  loud
  curl -s "$url/v1/completions" -d "$good" >answer
  curl -s "$url/v1/completions" -d '{"prompt": ""}' >answer
  line '^dtrun: POST /v1/completions 400 in [0-9]+ ms: prompt: expected at least one token$'
  curl -s "$url/now%0Ahere" >answer
  line '^dtrun: GET /now.here 404 in [0-9]+ ms: unknown route: /now here$'
  curl -s "$url/v1/completions" -H 'Origin: https://evil.example' -d "$good" >answer
  line '^dtrun: POST /v1/completions 403 '
  [ "$(wc -l <server.log)" = 4 ] || fail "$(<server.log)"
  loud -v
  curl -s "$url/v1/completions" -d "$good" >answer
  line '^dtrun: POST /v1/completions 200 in [0-9]+ ms: 3 tokens, length$'
  curl -sN "$url/v1/completions" -d '{"prompt": "a", "max_tokens": 3, "stream": true, "n": 2, "temperature": 1}' >answer
  line '^dtrun: POST /v1/completions 200 in [0-9]+ ms: 6 tokens, length$'
  # It leaves after the first byte of the answer, however long that takes.
  { curl -sN "$url/v1/completions" -d '{"prompt": "a", "max_tokens": 2000, "stream": true, "n": 64, "temperature": 1}' || true; } | head -c 1 >answer
  line '^dtrun: POST /v1/completions 200 in [0-9]+ ms: the client has left$'
  curl -s -m 0.3 "$url/v1/completions" -d '{"prompt": "a", "max_tokens": 2000, "n": 64, "temperature": 1}' >answer
  line '^dtrun: POST /v1/completions 499 in [0-9]+ ms: the client has left$'
  curl -s "$url/health" >answer
  line '^dtrun: GET /health 200 in [0-9]+ ms$'
  curl -sN "$url/v1/completions" -d '{"prompt": "a", "stream": true, "grammar": "root ::= \"ab\" \"Q\"", "logit_bias": [["Q", false]]}' >answer
  line '^dtrun: POST /v1/completions [24]00 in [0-9]+ ms: .*grammar: no token can follow'
}
it_goes_by_the_names_that_it_is_given() {
  serve --template chatml --served-model-name one --alias two -a org/three
  asks names.py one two org/three
  serve --template chatml
  asks names.py mini-target
}
it_does_not_tell_paths_to_clients() {
  cp -r "$models/mini-target" . && cp "$source_dir/policies/ar.lua" own.lua
  sed -i 's/^return/function Ar:draft() error "oops" end\nreturn/' own.lua
  local names
  names=$(sed -n 's/^local \([A-Za-z]*\) = .*define.*/\1/p' own.lua)
  sed -i "s/function Ar:/function $names:/" own.lua
  serve "$PWD/own.lua" -m "$PWD/mini-target"
  curl -s "$url/v1/chat/completions" -d '{"messages": [{"role": "user", "content": "a"}]}' >answer
  grep -q '"mini-target has no chat template: ' answer || fail "$(<answer)"
  curl -s "$url/v1/completions" -d '{"prompt": "a"}' >answer
  grep -q '"message":"own.lua:[0-9]*: oops"' answer || fail "$(<answer)"
  curl -sN "$url/v1/completions" -d '{"prompt": "a", "stream": true}' >answer
  grep -q "$PWD" answer && fail "$(<answer)"
  serve --served-model-name mine -m "$PWD/mini-target"
  curl -s "$url/apply-template" -d '{"messages": [{"role": "user", "content": "a"}]}' >answer
  grep -q '"mine has no chat template: ' answer || fail "$(<answer)"
}

run_tests
