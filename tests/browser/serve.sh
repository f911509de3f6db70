#!/usr/bin/env bash
# The page of `dtrun serve` in a real browser: serve.py uses it as a person would.
. "$(dirname "$0")/../cli/helpers.sh"
. "$(dirname "$0")/../cli/server.sh"

# uses WHAT ARGUMENTS...: runs that function of serve.py with a server that has these arguments
uses() {
  serve "${@:2}"
  PYTHONDONTWRITEBYTECODE=1 timeout 300 python3 "$source_dir/tests/browser/serve.py" "$url" "$1" secret 2>said || fail "$(tail -n 3 said)"
}
it_answers_in_a_chat() { uses chat_answers --template chatml; }
it_stops_an_answer() { uses chat_stops --template chatml; }
it_folds_reasoning() { uses chat_folds_reasoning --template chatml; }
it_calls_tools() { uses chat_calls_tools --template "$source_dir/tests/serve/talkative.jinja"; }
it_draws_trees_of_a_call() { uses playground_draws_calls --template chatml; }
it_keeps_markup_of_texts_as_text() { uses chat_is_plain_text --template chatml; }
it_continues_a_text_of_a_base_model() { uses base_model_continues; }
it_draws_trees_of_two_policies() { uses playground_draws; }
it_stops_a_run_of_the_playground() { uses playground_stops; }
it_marks_the_line_of_a_mistake() { uses playground_marks_mistakes; }
it_works_by_keyboard() { uses works_by_keyboard; }
it_is_readable_light_dark_and_narrow() { uses is_readable_everywhere; }
it_asks_for_the_key() { uses asks_for_the_key --api-key secret; }

run_tests
