#!/usr/bin/env bash
# scripts/quickstart: what it says of what it does and of what came out, with cmake, dtrun and the model played by others.
. "$(dirname "$0")/helpers.sh"

# The tree of a clone in which everything is there at once; $played is what dtrun prints on standard error.
stage() {
  mkdir -p tree/scripts tree/bin tree/build
  cp "$source_dir/scripts/quickstart" tree/scripts/
  printf '#!/bin/sh\n' | tee tree/scripts/packages tree/scripts/get-model >/dev/null
  cat >tree/bin/cmake <<'SH'
#!/bin/sh
echo "$*" >>cmake.log
case $1 in --build) for i in 1 2 3 4 5 6 7 8 9 10; do echo "[$i/10] Building"; done ;; esac
SH
  cat >tree/build/dtrun <<'SH'
#!/bin/sh
echo "$*" >>dtrun.log
echo "the text"
cat told >&2
SH
  chmod +x tree/scripts/* tree/bin/* tree/build/dtrun
}
starts() { run env PATH="$PWD/tree/bin:$PATH" tree/scripts/quickstart "$@"; }
said() { grep -qE "$1" stderr || fail "not said: $1"; }

it_shows_the_gain_of_the_default_policy_and_the_same_text() {
  stage
  echo 'dtrun: rate 131.5 tokens/s, ar 98.1 tokens/s, prompt included: 1.34x, same 120 tokens, median of 3 rounds' >tree/told
  starts
  [ "$status" -eq 0 ] || fail "exit status $status"
  [ "$(grep -c 'the text' stdout)" -eq 2 ] || fail 'not a text of each model'
  [ "$(wc -l <tree/dtrun.log)" -eq 2 ] || fail 'not two runs'
  grep -vE '^(-p|-m smollm2 --chat) .* --compare ar$' tree/dtrun.log && fail 'a policy is named'
  grep -q -- '--target product' tree/cmake.log || fail 'not what an installation needs'
  for part in 20 40 60 80 100; do said "^  $part %$"; done
  said '^  plain decoding +98.1 tokens/s$'
  said '^  with its head +131.5 tokens/s$'
  said '^  The same text, 1.34x as fast.$'
}
it_says_why_where_nothing_is_gained_and_shows_no_loss() {
  stage
  for told in 'dtrun: slower than plain decoding (0.93x, prompt included): a pass over 3 rows takes 2.1 times one over a single row here; try: dtrun ar' \
    'dtrun: the machine was busy in 5 of the rounds (steal): they count, and the ratio is rough' ''; do
    { echo 'dtrun: rate 92.1 tokens/s, ar 98.1 tokens/s, prompt included: 0.93x, same 120 tokens, median of 3 rounds'; echo "$told"; } >tree/told
    starts --no-model
    [ "$status" -eq 0 ] || fail "exit status $status"
    case $told in
      *slower*) said 'and no faster: a pass over 3 rows takes 2.1 times one over a single row here; a larger model would gain' ;;
      *busy*) said 'and no faster: the machine was busy; a larger model would gain' ;;
      *) said 'and no faster: guesses cost here what they bring; a larger model would gain' ;;
    esac
    grep -qE '0\.93x|92\.1' stderr && fail 'a loss is shown'
  done
  sed -i 's/0.93x, same/1.01x, same/' tree/told
  starts --no-model
  said 'and no faster'
  sed -i 's/1.01x, same/1.02x, same/' tree/told
  starts --no-model
  said '^  The same text, 1.02x as fast.$'
}
it_does_without_the_real_model() {
  stage
  echo 'dtrun: rate 131.5 tokens/s, ar 98.1 tokens/s, prompt included: 1.34x, same 120 tokens, median of 3 rounds' >tree/told
  printf '#!/bin/sh\necho "no network" >&2\nexit 1\n' >tree/scripts/get-model
  starts
  [ "$status" -eq 0 ] || fail "exit status $status"
  [ "$(wc -l <tree/dtrun.log)" -eq 1 ] || fail 'not one run'
  said 'no network'
  said 'build/dtrun pull smollm2, then build/dtrun chat -m smollm2'
  starts --no-model
  grep -q 'no network' stderr && fail 'it was tried nevertheless'
  starts nonsense
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
}
it_shows_what_failed() {
  stage
  echo 'dtrun: no such folder' >tree/told
  echo 'exit 2' >>tree/build/dtrun
  starts --no-model
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  said '^dtrun: no such folder$'
  printf '#!/bin/sh\n[ $1 != --build ] || { echo "[1/2] Building"; echo "no gcc"; exit 1; }\n' >tree/bin/cmake
  starts --no-model
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  said 'no gcc'
}

run_tests
