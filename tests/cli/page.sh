#!/usr/bin/env bash
# The page of dtrun serve, without a browser: its files are served as they are in the source, and load nothing from elsewhere; drawings.
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
command -v curl >/dev/null || { echo 'skipped: no curl'; exit 77; }
page=$source_dir/lua/serve/page
files=("$page"/* "$source_dir"/lua/dt/trace/tree.{css,js})

# has_header PATTERN: a header of the last answer matches
has_header() { grep -qiE "^$1"$'\r?$' headers || fail "no header $1: $(<headers)"; }

it_serves_each_file_to_all_with_a_policy_that_lets_nothing_else_in() {
  serve --api-key secret
  local file name code
  for file in "${files[@]}"; do
    name=${file##*/}
    code=$(curl -s -D headers -o got -w '%{http_code}' "$url/${name#index.html}")
    [ "$code" = 200 ] || fail "$name: $code"
    same_text got "$file"
    has_header "content-security-policy: default-src 'none'; script-src 'self'; .*frame-ancestors 'none'"
    has_header 'x-content-type-options: nosniff'
    has_header 'etag: "[0-9a-f]{16}"'
    case $name in
      *.html) has_header 'content-type: text/html; charset=utf-8' ;;
      *.js) has_header 'content-type: text/javascript; charset=utf-8' ;;
      *.css) has_header 'content-type: text/css; charset=utf-8' ;;
      *.svg) has_header 'content-type: image/svg\+xml' ;;
      *) fail "$name: no type" ;;
    esac
  done
  rm got
  code=$(curl -s -o got -w '%{http_code}' "$url/chat.js" -H "If-None-Match: $(curl -sI "$url/chat.js" | tr -d '\r' | sed -n 's/^ETag: //p')")
  [ "$code" = 304 ] && [ ! -s got ] || fail "a file that the browser has: $code"
  for name in nothing.js page/chat.js ..%2fhttp.c; do
    [ "$(curl -s --path-as-is -o got -w '%{http_code}' "$url/$name")" = 404 ] || fail "$name is there"
  done
  [ "$(curl -s -o got -w '%{http_code}' "$url/" -H 'Host: evil.example')" = 403 ] || fail 'a foreign Host'
  [ "$(curl -s -o got -w '%{http_code}' "$url/" -H 'Origin: http://evil.example')" = 403 ] || fail 'a foreign Origin'
  [ "$(curl -s -o got -w '%{http_code}' "$url/v1/policies")" = 401 ] || fail 'policies without the key'
}
it_takes_nothing_from_elsewhere() {
  grep -nE '(https?:)?//[a-zA-Z0-9]|@import|url\(' "${files[@]}" | grep -vE '://www\.w3\.org/2000/svg"' && fail 'an address of elsewhere'
  grep -nE ' on[a-z]+=| style=|<script>|javascript:' "$page"/*.html && fail 'script or style inside the page'
  grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage' "${files[@]}" && fail 'markup of texts, or a store that stays'
  return 0
}
it_names_only_what_is_there() {
  local name
  for name in $(grep -ohE 'byId\("[a-z-]+"\)' "$page"/*.js | sed 's/.*"\(.*\)".*/\1/' | sort -u) \
    $(grep -ohE '(for|aria-labelledby|aria-controls)="[a-z-]+"' "$page"/index.html | sed 's/.*="\(.*\)"/\1/'); do
    grep -qE "id(=|: )\"$name\"" "$page"/*.{html,js} || fail "no element has the id $name"
  done
  for name in $(grep -ohE '(href|src)="/[^"]+"' "$page"/index.html | sed 's/.*"\/\(.*\)"/\1/') $(grep -ohE 'from "\./[^"]+"' "$page"/*.js | sed 's/.*\/\(.*\)"/\1/'); do
    [ -e "$page/$name" ] || [ -e "$source_dir/lua/dt/trace/$name" ] || fail "no file $name"
  done
}
it_has_the_colours_of_other_pages_for_the_parts_of_the_time() {
  local part colour
  sed -n '/PHASES/,/}/p' "$source_dir/lua/dt/draw/palette.lua" | grep -oE '[a-z]+ = "#[0-9a-f]+"' | tr -d '="' | while read -r part colour; do
    grep -qE "\.$part \{ background: $colour; \}" "$page/page.css" || fail "$part is not $colour"
  done
}
# draws STATUS BODY: the route gives this status; its answer is in the file got
draws() {
  local code
  code=$(curl -s -o got -w '%{http_code}' "$url/v1/traces/draw" --data-binary "$2" "${@:3}")
  [ "$code" = "$1" ] || fail "$2: $code, expected $1: $(head -c 300 got)"
}
it_draws_as_run_trace_does() {
  serve
  "$dtrun" dynatree -q -t 1 -p 'It was a dark night, and' -n 20 --trace t.jsonl >/dev/null
  grep '"iteration"' t.jsonl | paste -sd, | sed 's/.*/{"iterations": [&]}/' >body
  draws 200 @body
  cat >same.lua <<'LUA'
local dt = require "dt"
local here = dt.json.decode(assert(io.open "got"):read "a").value
local there = require "dt.trace_trees".draw(require "dt.trace".read("t.jsonl").iterations, false)
assert(#here == #there and #here > 2, #here)
for i, svg in ipairs(there) do assert(here[i] == svg, i) end
LUA
  "$dtrun" run ./same.lua || fail 'another drawing'
  draws 200 '{"iterations": []}'
  [ "$(<got)" = '{"value": []}' ] || fail "none: $(<got)"
  draws 200 '{"iterations": [{"nodes": [{"id": 0, "token": 1, "text": "<b>&"}], "bonus": {"token": 1, "text": "x"}, "committed": [], "ms": {"draft": 0,
    "verify": 0, "commit": 0, "policy": 0}}]}'
  grep -q '&lt;b&gt;&amp;' got || fail "markup: $(<got)"
  draws 400 '{"iterations": 1}'
  draws 400 '[]'
  draws 400 '{"iterations": [1]}'
  draws 400 '{"iterations": [{"nodes": []}]}'
  grep -q 'draw: iteration 1: no nodes' got || fail "$(<got)"
  { printf '{"iterations": []}' && head -c $((1048576 - 18)) /dev/zero | tr '\0' ' '; } >body
  draws 200 @body
  printf ' ' >>body
  draws 413 @body
  serve --api-key secret
  draws 401 '{"iterations": []}'
  draws 200 '{"iterations": []}' -H 'Authorization: Bearer secret'
}
run_tests
