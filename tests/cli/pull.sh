#!/usr/bin/env bash
# dtrun pull OWNER/NAME, with a server of our own (hub_server.py) that misbehaves in all ways that servers may.
. "$(dirname "$0")/helpers.sh"
here=$(realpath "$(dirname "$0")")
[ -x "$(dirname "$dtrun")/dtrun-pull" ] || { echo 'skipped: built without libcurl (libcurl4-openssl-dev, libssl-dev)'; exit 77; }
unset HF_HOME HF_TOKEN HF_TOKEN_PATH SSL_CERT_FILE http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
export HF_HUB_CACHE=hub HF_TOKEN_PATH=/nowhere/token DTRUN_PULL_STALL_SECONDS=600
commit=0123456789abcdef0123456789abcdef
entry=hub/models--o--mini
weights=$entry/blobs/$(sha256sum <"$models/mini-target/model.safetensors" | cut -d' ' -f1)

# serve [CERTIFICATE]: starts the server in the background, with o/mini, which is mini-target
serve() {
  mkdir -p served/o/mini
  cp "$models"/mini-target/* served/o/mini/
  timeout 600 python3 "$here/hub_server.py" served "$@" >server.log 2>&1 &
  server=$!
  trap 'kill $server 2>/dev/null' EXIT
  wait_for -e port
  HF_ENDPOINT=http://127.0.0.1:$(<port)
  export HF_ENDPOINT
}
wait_for() {
  for _ in $(seq 3000); do
    test "$@" && return
    sleep 0.02
  done
  fail "waited in vain for: $*"
}
goes() { echo "$*" >mode; } # sets what goes wrong from now on
# fails_with STATUS PATTERN [NAME]: the last line matches, nothing is printed, and no incomplete file has its final name
fails_with() {
  run "$dtrun" pull "${3:-o/mini}"
  [ "$status" -eq "$1" ] || fail "$(cat mode): exit status $status, expected $1"
  [ -s stdout ] && fail "$(cat mode): something on standard output"
  tail -n 1 stderr | grep -qE "^dtrun: .*$2" || fail "$(cat mode): expected '$2'"
  [ "$(head -n -1 stderr | grep -vcE '^dtrun: [a-z_.]+: [0-9].*$')" -eq 0 ] || fail "$(cat mode): more than one line"
  [ ! -e $entry/refs/main ] || fail "$(cat mode): named though it is not whole"
}
is_whole() {
  local file
  for file in config.json model.safetensors tokenizer.json; do
    same_text "$models/mini-target/$file" "$entry/snapshots/$commit/$file"
  done
  [ "$(<$entry/refs/main)" = $commit ] || fail 'no refs/main'
  [ "$(find hub -name '*.incomplete')" = '' ] || fail 'something incomplete stays'
}
pulls() {
  succeeds pull o/mini
  is_whole
}
requests() { grep -c "$1" log || true; }

it_brings_a_model_that_gives_the_same_tokens() {
  serve
  pulls
  [ "$(<stdout)" = "$entry/snapshots/$commit" ] || fail "printed $(<stdout)"
  [ "$(tail -n 1 stderr)" = 'dtrun: run it with -m o/mini' ] || fail 'its name is not said'
  grep -q 'model.safetensors: 100 %' stderr || fail 'no progress told'
  [ "$(readlink $entry/snapshots/$commit/model.safetensors)" = "../../blobs/$(basename "$weights")" ] || fail 'the layout'
  succeeds ar -m o/mini --text 'It was a dark night' -n 30 -q
  mv stdout pulled
  succeeds ar -m "$models/mini-target" --text 'It was a dark night' -n 30 -q
  same_text pulled stdout
  succeeds ls
  grep -qE '^o/mini +target +F16 ' stdout || fail 'not listed'
  rm log
  pulls # a second time: only the list and the hashes are requested
  [ "$(requests GET)" -eq 1 ] || fail "downloaded again: $(<log)"
  for name in hf.co/o/mini https://huggingface.co/o/mini huggingface.co/o/mini; do succeeds pull $name; done
  succeeds rm -y o/mini
  [ ! -e $entry ] || fail 'not removed'
}
it_goes_on_where_it_was_broken_off() {
  serve
  goes break 500000
  fails_with 1 'the connection to localhost was interrupted: .*'
  [ "$(stat -c %s "$weights.incomplete")" -eq 500000 ] || fail 'what came is not kept'
  refuses 2 'o/mini is neither here nor in hub: dtrun pull o/mini downloads it$' ar -m o/mini --text hello
  rm mode
  pulls
  grep -q 'model.safetensors: 13.7 MB, continues at 0.5 MB' stderr || fail 'it began again'
  [ "$(requests 'other GET .*model.safetensors - bytes=500000-$')" -eq 1 ] || fail "no range: $(<log)"
}
it_begins_a_broken_connection_again_by_itself() {
  serve
  goes break 4000000
  pulls
  for at in 4000000 8000000 12000000; do [ "$(requests "other GET .*model.safetensors - bytes=$at-")" -eq 1 ] || fail "not from $at: $(<log)"; done
}
it_begins_anew_where_the_server_knows_no_ranges() {
  serve
  for how in norange norange416; do
    rm -rf hub
    goes break 500000
    fails_with 1 'was interrupted'
    goes $how
    if [ $how = norange ]; then
      pulls
    else
      fails_with 1 'config.json|model.safetensors: the server answered with status 416'
    fi
  done
  rm -rf hub
  goes break 500000
  fails_with 1 'was interrupted'
  goes again 2000000 # no more comes than had come before
  fails_with 1 'was interrupted'
  [ "$(requests 'other GET .*model.safetensors - bytes=2000000-')" -eq 1 ] || fail "tried in vain: $(<log)"
  goes part
  fails_with 1 'model.safetensors: the server sent another part than requested: refused'
}
it_refuses_what_is_not_what_was_told() {
  serve
  goes wrong
  fails_with 1 'model.safetensors: the downloaded file has the hash [0-9a-f]{12}.., expected [0-9a-f]{12}.., and was removed: pull it again'
  [ ! -e "$weights" ] && [ ! -e "$weights.incomplete" ] || fail 'a wrong file stays'
  goes short
  fails_with 1 'the server stopped after [0-9]+ of the [0-9]+ bytes that it announced'
  goes more
  fails_with 1 'the server sent more than the [0-9]+ bytes that it announced: refused'
  for how in nohash badhash; do
    goes $how
    fails_with 1 'model.safetensors: the server sends no size or no hash of it'
  done
  goes size x
  fails_with 1 'sends no size'
  rm -rf hub
  goes size 13680865 # one byte more than it has
  fails_with 1 'the server stopped after 13680864 of the 13680865 bytes'
  goes size 13680863
  fails_with 1 'the server sent more than the 13680863 bytes'
  head -c 13680864 /dev/zero >"$weights.incomplete" # what is here already may be wrong too
  rm mode
  fails_with 1 'the downloaded file has the hash'
  pulls
}
it_keeps_what_fits_on_a_full_disk() {
  serve
  goes fits
  (ulimit -f 5000 && fails_with 1 'model.safetensors: File too large after 5.1 MB, which are kept: free disk space, then dtrun pull continues') || exit 1
  [ "$(stat -c %s "$weights.incomplete")" -eq 5120000 ] || fail 'what came is not kept'
  pulls
  [ "$(requests 'other GET .*model.safetensors - bytes=5120000-$')" -eq 1 ] || fail 'it began again'
  rm -rf hub
  goes size 99999999999999999
  fails_with 1 'hub: the download needs 2[0-9]+\.[0-9]+ GB, but only .* are free'
  goes size 9223372036854775807
  fails_with 1 'are free'
  rm -rf hub && mkdir hub
  goes fits
  unshare -m true 2>/dev/null || { echo '  skipped in part: no small file system can be mounted here'; return 0; }
  run unshare -m bash -c "mount -t tmpfs -o size=8m none hub && exec '$dtrun' pull o/mini"
  [ "$status" -eq 1 ] && grep -qE '^dtrun: hub: the download needs 13\.8 MB, but only [0-9.]+ MB are free$' stderr || fail 'a full file system'
}
it_bounds_silence_and_slowness() {
  serve
  export DTRUN_PULL_STALL_SECONDS=3
  for how in silent 'stall 200000' drip; do
    goes "$how"
    fails_with 1 '(127.0.0.1|localhost) stalled: less than 1024 bytes per second for 3 s \(DTRUN_PULL_STALL_SECONDS\)'
  done
  [ "$(stat -c %s "$weights.incomplete")" -ge 200000 ] || fail 'what came before is not kept'
  for seconds in 0 -1 x 86401 1.5; do
    DTRUN_PULL_STALL_SECONDS=$seconds fails_with 2 "DTRUN_PULL_STALL_SECONDS '$seconds': expected a whole number from 1 to 86400"
  done
}
it_bounds_headers_redirects_and_lists() {
  serve
  goes headers
  fails_with 1 'the server sent more than 65536 bytes of headers: refused'
  goes redirects
  fails_with 1 'more than 10 redirects: refused'
  goes listing
  fails_with 1 'the server sent an answer of more than 16777216 bytes: refused'
  goes garbage '[]'
  fails_with 1 'o/mini: the list of files: expected one JSON object'
  goes garbage '{"sha":"0123456789","siblings":{}}'
  fails_with 1 "o/mini: the list of files has no commit \('sha'\) or no files \('siblings'\)"
  for commit in .. ../../x 0123 0123456G '' "$(printf '%065d' 0)"; do
    goes garbage "{\"sha\":\"$commit\",\"siblings\":[]}"
    fails_with 1 "has no commit"
  done
  goes garbage '{"sha":"0123456789","siblings":[{}]}'
  fails_with 1 'the list of files contains a file without a name'
}
it_refuses_names_that_climb_out() {
  serve
  for name in ../x /etc/x a/../../x a/.. . .. a//b a/ '' 'a\\\\b' 'a\\u001b[2Jb' 'a\\nb' 'a\\u007fb' "$(printf '%0256d' 0)"; do
    goes name "$name"
    echo "name ${name//\\\\/\\}" >mode
    [ -n "$name" ] || echo 'garbage {"sha":"0123456789","siblings":[{"rfilename":""}]}' >mode
    fails_with 1 "the file '.*' would be outside of the model's folder: refused"
  done
  printf 'name a\\u0000b' >mode
  fails_with 1 'the list of files: .*u0000|NUL'
  [ ! -e hub ] || fail 'something was made'
}
it_refuses_ids_that_climb_out() {
  export HF_ENDPOINT=http://127.0.0.1:1
  for id in ../x a/.. ./b a/b/c /a/b a//b a/ 'a/b:' 'a b/c' 'a/b%2f' 'a/b?x' $'a/b\n' 'a--b/c' 'a\b/c' "$(printf '%0200d/x' 0)"; do
    run "$dtrun" pull "$id"
    [ "$status" -eq 2 ] && [ "$(wc -l <stderr)" -eq 1 ] && grep -q "is not the id of a model, such as OWNER/NAME or OWNER/NAME:Q4_K_M$" stderr || fail "'$id': $status"
  done
  [ ! -e hub ] || fail 'something was made'
}
it_tells_what_a_status_means() {
  serve
  goes status 401
  fails_with 2 'o/mini: there is no such model, or the server requires a token \(401\): set HF_TOKEN, or run hf auth login'
  goes status 403
  fails_with 2 "o/mini: the server denies access \(403\): accept the model's terms on its web page"
  goes status 404
  fails_with 2 'o/mini: not found on the server \(404\)'
  goes status 429
  fails_with 1 'o/mini: too many requests to the server \(429\): try again later'
  goes status 500
  fails_with 1 'o/mini: the server answered with status 500: try again later'
  goes status 403-files
  fails_with 2 'config.json: the server denies access \(403\)'
  rm mode
  touch mode
  fails_with 2 'o/other: not found on the server \(404\)' o/other
  HF_ENDPOINT=http://127.0.0.1:1 fails_with 1 'cannot reach 127.0.0.1: '
  HF_ENDPOINT=http://nowhere.invalid fails_with 1 'cannot reach nowhere.invalid: '
  for endpoint in ftp://127.0.0.1 127.0.0.1 file:///etc http://; do HF_ENDPOINT=$endpoint fails_with 2 "HF_ENDPOINT '.*': expected a URL"; done
}
it_shows_its_token_to_the_endpoint_only() {
  serve
  mkdir -p home
  echo hf_file >home/token
  HF_TOKEN=hf_secret pulls
  [ "$(requests '^own .* hf_secret ')" -ge 8 ] && [ "$(requests '^own .* - [-b]')" -eq 0 ] || fail "not sent: $(<log)"
  [ "$(requests '^other ')" -ge 2 ] && [ "$(requests '^other .*hf_')" -eq 0 ] || fail "sent elsewhere: $(<log)"
  rm -rf hub log
  HF_TOKEN_PATH=home/token pulls
  [ "$(requests '^own .* hf_file ')" -ge 8 ] && [ "$(requests '^other .*hf_')" -eq 0 ] || fail "of a file: $(<log)"
  rm -rf hub log
  HF_TOKEN_PATH='' HF_HOME=home pulls
  [ "$(requests '^own .* hf_file ')" -ge 8 ] || fail "of HF_HOME: $(<log)"
  rm -rf hub log
  goes leave # redirects to the other port at once, which is another server
  HF_TOKEN=hf_secret fails_with 1 'redirects'
  [ "$(requests '^own .* hf_secret ')" -ge 1 ] && [ "$(requests '^other .*hf_')" -eq 0 ] && [ "$(requests '^other ')" -ge 1 ] || fail "leave: $(<log)"
  goes fits
  HF_TOKEN=$'a\nX-Bad: 1' fails_with 2 'HF_TOKEN contains no token: expected one word of printable characters'
  HF_TOKEN=hf_secret HF_ENDPOINT=http://127.0.0.1:1 fails_with 1 'cannot reach'
  grep -q hf_secret stderr && fail 'told'
  true
}
it_trusts_certificates_that_are_vouched_for() {
  command -v openssl >/dev/null || { echo '  skipped: no openssl'; return 0; }
  openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=us -addext subjectAltName=IP:127.0.0.1 -days 2 2>/dev/null
  cat key cert >both
  serve both
  export HF_ENDPOINT=${HF_ENDPOINT/http:/https:}
  touch mode
  fails_with 1 '127.0.0.1: SSL certificate problem: '
  SSL_CERT_FILE=cert fails_with 1 'a redirect from https to http: refused'
}
it_takes_one_gguf_file_of_several() {
  serve
  mkdir -p served/o/gguf/Q8_0 served/o/split served/o/none
  for name in m-Q4_K_M m-Q2_K Q8_0/m mmproj-m; do head -c 20000 /dev/urandom >served/o/gguf/$name.gguf; done
  touch served/o/none/pytorch_model.bin served/o/split/m-Q4_0-0000{1,3}-of-00003.gguf
  brings() {
    rm -rf hub
    succeeds pull "$1"
    [ "$(<stdout)" = "hub/models--o--gguf/snapshots/$commit/$2" ] || fail "$1: printed $(<stdout)"
    same_text "served/o/gguf/$2" "$(<stdout)"
    [ "$(find hub -name '*.gguf' | wc -l)" -eq 1 ] || fail "$1: more than one file"
    refuses 2 "$(basename "$2")" ar -m "${3:-$1}" --text hello
  }
  brings o/gguf m-Q4_K_M.gguf
  brings o/gguf:Q2_K m-Q2_K.gguf
  brings o/gguf:q8_0 Q8_0/m.gguf
  brings o/gguf:m-Q2_K.gguf m-Q2_K.gguf o/gguf
  brings o/gguf:Q8_0/m.gguf Q8_0/m.gguf
  touch mode
  fails_with 2 'o/gguf has no Q5_K: name one, as in o/gguf:FILE: Q8_0/m.gguf, m-Q2_K.gguf, m-Q4_K_M.gguf$' o/gguf:Q5_K
  fails_with 2 'o/gguf: 3 files match m: name one' o/gguf:m
  fails_with 2 'o/none contains no .gguf file, and no config.json with \*.safetensors' o/none
  fails_with 2 'o/mini contains no .gguf file$' o/mini:Q4_K_M
  fails_with 2 'o/split lacks m-Q4_0-00002-of-00003.gguf, part 2 of 3 of a model' o/split:Q4_0
  rm served/o/gguf/m-Q4_K_M.gguf
  fails_with 2 'o/gguf has no Q4_K_M: name one' o/gguf
}
it_runs_a_gguf_file_that_it_brought() {
  serve
  local file=$source_dir/tests/golden/logits/gguf_llama/model.gguf
  mkdir -p served/o/llama
  cp "$file" served/o/llama/tiny-F16.gguf
  succeeds pull o/llama:f16
  succeeds ar -m o/llama:F16 -md none --text hello -n 5 -q
  mv stdout pulled
  succeeds ar -m "$file" -md none --text hello -n 5 -q
  same_text pulled stdout
}
it_brings_all_parts_of_a_model() {
  serve
  local file=$source_dir/tests/golden/logits/gguf_llama/model.gguf spec
  mkdir -p served/o/parts/F16
  python3 "$source_dir/tests/golden/split_gguf.py" "$file" 3 served/o/parts/F16/tiny || fail 'it cannot be split'
  cp "$file" served/o/parts/llama-every-of-breed.gguf
  succeeds ar -m "$file" -md none --text hello -n 5 -q
  mv stdout expected
  for spec in F16 tiny-00002-of-00003.gguf F16/tiny-00001-of-00003.gguf; do
    rm -rf hub
    succeeds pull "o/parts:$spec"
    [ "$(<stdout)" = "hub/models--o--parts/snapshots/$commit/F16/tiny-00001-of-00003.gguf" ] || fail "$spec: printed $(<stdout)"
    [ "$(find hub -name 'tiny-*.gguf' | wc -l)" -eq 3 ] || fail "$spec: not all parts: $(find hub)"
    succeeds ar -m "o/parts:$spec" -md none --text hello -n 5 -q
    same_text expected stdout
  done
  succeeds pull o/parts:llama-every-of-breed.gguf # not a part of a model: parts are recognized by their digits
  same_text "$file" "$(<stdout)"
}
it_leaves_what_is_no_part_of_a_model() {
  serve
  mkdir -p served/o/mini/onnx
  touch served/o/mini/{README.md,pytorch_model.bin,consolidated.safetensors,onnx/model.safetensors,tokenizer.model}
  echo '{}' | tee served/o/mini/{tokenizer_config.json,generation_config.json,chat_template.jinja} >/dev/null
  pulls
  [ "$(find $entry/snapshots -type l -printf '%f\n' | sort | paste -sd ' ')" = \
    'chat_template.jinja config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json' ] || fail "$(ls $entry/snapshots/*)"
}
it_waits_for_another_pull_of_the_same_file() {
  serve
  goes hold 3000000
  "$dtrun" pull o/mini >first 2>&1 &
  local one=$!
  wait_for -s "$weights.incomplete"
  "$dtrun" pull o/mini >second 2>&1 &
  local two=$!
  for _ in $(seq 3000); do
    grep -qs 'model.safetensors: waiting for another pull, which downloads it' second && break
    sleep 0.02
  done
  rm mode
  wait $one || fail "the first: $(<first)"
  wait $two || fail "the second: $(<second)"
  grep -q 'waiting for another pull, which downloads it' second || fail 'it does not wait'
  is_whole
  [ "$(requests 'other GET .*model.safetensors')" -eq 1 ] || fail 'brought twice'
}
it_ends_at_ctrl_c_and_goes_on_later() {
  serve
  goes hold 3000000
  bash -c 'trap - INT; exec "$@"' bash "$dtrun" pull o/mini >said 2>&1 &
  local one=$!
  wait_for -s "$weights.incomplete"
  kill -TERM $one
  wait $one
  [ $? -eq 130 ] || fail 'another exit status'
  [ "$(tail -n 1 said)" = 'dtrun: interrupted: dtrun pull o/mini continues from there' ] || fail "$(<said)"
  rm mode
  pulls
  grep -q 'continues at' stderr || fail 'it began again'
}
it_draws_a_bar_on_a_terminal() {
  command -v script >/dev/null || { echo '  skipped: no script(1)'; return 0; }
  serve
  script -qec "$(printf '%q ' env HF_ENDPOINT="$HF_ENDPOINT" HF_HUB_CACHE="$PWD/hub" "$dtrun" pull o/mini)" /dev/null >said </dev/null
  grep -qF 'model.safetensors [##############################] 13.7 MB of 13.7 MB' said || fail "$(<said)"
  is_whole
}

run_tests
