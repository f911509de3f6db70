# Shared by tests of dtrun serve; after helpers.sh.
[ -x "$(dirname "$dtrun")/dtrun-serve" ] || { echo 'skipped: built without libmicrohttpd (libmicrohttpd-dev)'; exit 77; }

# serve ARGUMENTS...: starts a server in the background, at $url, and ends the one that this test started before
serve() {
  [ -z "${server:-}" ] || kill "$server"
  rm -f port
  "$dtrun" serve --port 0 --port-file port -q -t 1 "$@" >served 2>server.log &
  server=$!
  trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT
  for _ in $(seq 1500); do
    [ -s port ] && curl -sf -o /dev/null "http://127.0.0.1:$(<port)/health" && break
    sleep 0.02
  done
  url=http://127.0.0.1:$(<port)
}
