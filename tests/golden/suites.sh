#!/usr/bin/env bash
# Schemas of others and random ones, beside llguidance: suites.sh DTRUN SOURCE ACCEPTS. Packages are pinned. DTRUN_MASKBENCH names a folder
# with maskbench/data of github.com/guidance-ai/jsonschemabench; otherwise it is fetched.
. "$(dirname "$0")/../cli/helpers.sh"
. "$(dirname "$0")/../cli/environment.sh"
accepts=$(realpath "$3")
benchmark=ba103c73756198dd9b149ddc7db7867da7a077f6 # of jsonschemabench

it_accepts_no_wrong_text() {
  environment suites 'jsonschema[format-nongpl]==4.25.1' pydantic==2.12.4 llguidance==1.9.1 || return 0
  local with=() data=${DTRUN_MASKBENCH:-maskbench/data}
  if "$environment/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jsonschema jsonschema==4.25.1 >log 2>&1; then
    mkdir suite && tar -xf jsonschema-4.25.1.tar.gz -C suite --strip-components=1
    with+=(--suite suite/json/tests)
  else
    echo "  without JSON-Schema-Test-Suite: $(tail -n 1 log)"
  fi
  if [ -z "${DTRUN_MASKBENCH:-}" ]; then
    curl -sSL "https://codeload.github.com/guidance-ai/jsonschemabench/tar.gz/$benchmark" 2>log | tar -xz --strip-components=1 2>>log
  fi
  if [ -d "$data" ]; then with+=(--maskbench "$data"); else echo "  without maskbench: $(head -n 1 log)"; fi
  "$environment/bin/python" "$source_dir/tests/golden/check_suites.py" "$accepts" --beside llguidance "${with[@]}" 2>log || { tail -n 5 log; exit 1; }
}

run_tests
