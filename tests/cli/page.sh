#!/usr/bin/env bash
# The page of dtrun serve, without a browser: its files are served as they lie in lua/serve/page, and hold nothing of elsewhere.
. "$(dirname "$0")/helpers.sh"
[ -x "$(dirname "$dtrun")/dtrun-serve" ] || { echo 'skipped: built without libmicrohttpd (libmicrohttpd-dev)'; exit 77; }
command -v curl >/dev/null || { echo 'skipped: no curl'; exit 77; }
page=$source_dir/lua/serve/page

# serve ARGUMENTS...: a server in the background, at $url
serve() {
  "$dtrun" serve --port 0 --port-file port -q -t 1 "$@" >served 2>server.log &
  server=$!
  trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT
  for _ in $(seq 1500); do
    [ -s port ] && curl -sf -o /dev/null "http://127.0.0.1:$(<port)/health" && break
    sleep 0.02
  done
  url=http://127.0.0.1:$(<port)
}
# has_header PATTERN: among those of the last answer
has_header() { grep -qiE "^$1"$'\r?$' headers || fail "no header $1: $(<headers)"; }

it_serves_each_file_to_all_with_a_policy_that_lets_nothing_else_in() {
  serve --api-key secret
  local file name code
  for file in "$page"/*; do
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
  grep -nE '(https?:)?//[a-zA-Z0-9]|@import|url\(' "$page"/*.{html,css,js} | grep -vE '://www\.w3\.org/2000/svg"' && fail 'an address of elsewhere'
  grep -nE ' on[a-z]+=| style=|<script>|javascript:' "$page"/*.html && fail 'script or style inside the page'
  grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage' "$page"/*.js && fail 'markup of texts, or a store that stays'
  return 0
}
it_names_only_what_is_there() {
  local name
  for name in $(grep -ohE 'byId\("[a-z-]+"\)' "$page"/*.js | sed 's/.*"\(.*\)".*/\1/' | sort -u) \
    $(grep -ohE '(for|aria-labelledby|aria-controls)="[a-z-]+"' "$page"/index.html | sed 's/.*="\(.*\)"/\1/'); do
    grep -qE "id(=|: )\"$name\"" "$page"/*.{html,js} || fail "no element has the id $name"
  done
  for name in $(grep -ohE '(href|src)="/[^"]+"' "$page"/index.html | sed 's/.*"\/\(.*\)"/\1/') $(grep -ohE 'from "\./[^"]+"' "$page"/*.js | sed 's/.*\/\(.*\)"/\1/'); do
    [ -e "$page/$name" ] || fail "no file $name"
  done
}
run_tests
