#!/usr/bin/env bash
# The page of `dtrun serve` in a real browser: serve.py uses it as a person would.
. "$(dirname "$0")/../cli/helpers.sh"
[ -x "$(dirname "$dtrun")/dtrun-serve" ] || { echo 'skipped: built without libmicrohttpd (libmicrohttpd-dev)'; exit 77; }

# uses WHAT ARGUMENTS...: that function of serve.py, with a server of these arguments
uses() {
  "$dtrun" serve --port 0 --port-file port -q -t 1 "${@:2}" >served 2>server.log &
  server=$!
  trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT
  for _ in $(seq 1500); do
    [ -s port ] && break
    sleep 0.02
  done
  PYTHONDONTWRITEBYTECODE=1 timeout 300 python3 "$source_dir/tests/browser/serve.py" "http://127.0.0.1:$(<port)" "$1" secret 2>said || fail "$(tail -n 3 said)"
}
it_answers_in_a_chat() { uses chat_answers --template chatml; }
it_stops_an_answer() { uses chat_stops --template chatml; }
it_keeps_markup_of_texts_as_text() { uses chat_is_plain_text --template chatml; }
it_continues_a_text_of_a_base_model() { uses base_model_continues; }
it_draws_trees_of_two_policies() { uses playground_draws; }
it_marks_the_line_of_a_mistake() { uses playground_marks_mistakes; }
it_works_by_keyboard() { uses works_by_keyboard; }
it_is_readable_light_dark_and_narrow() { uses is_readable_everywhere; }
it_asks_for_the_key() { uses asks_for_the_key --api-key secret; }

run_tests
