#!/usr/bin/env bash
# dtrun serve, by programs in Python: mixed requests alone and at once, the package openai: serve_clients.sh DTRUN SOURCE [REQUESTS]
requests=${3:-60}
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
python=${DTRUN_PYTHON:-python3} # with the package openai, if there is one

it_gives_each_of_many_requests_its_text() {
  serve --cache-ram 8 # room for some prompts' rows, not for all
  "$python" "$source_dir/tests/serve/many.py" "$url" "$requests" >many || fail "$(<many)"
  kill $server
  wait $server || fail "exit status $?: $(<server.log)"
  [ ! -s server.log ] || fail "$(<server.log)"
}
it_serves_the_package_openai() {
  "$python" -c 'import openai' 2>/dev/null || { echo '  skipped: no package openai for Python (DTRUN_PYTHON names one that has it)'; return 0; }
  serve --template chatml --api-key secret
  "$python" "$source_dir/tests/serve/openai_client.py" "$url" secret >said 2>&1 || fail "$(tail -n 5 said)"
}

run_tests
