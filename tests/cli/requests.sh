#!/usr/bin/env bash
# dtrun serve: requests as clients send them, by Python.
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
python=${DTRUN_PYTHON:-python3}
command -v "$python" >/dev/null || { echo 'skipped: no python3'; exit 77; }

# asks SCRIPT ARGUMENTS...: runs tests/serve/SCRIPT on the server
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
  asks requests.py
}

run_tests
