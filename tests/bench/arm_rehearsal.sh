#!/usr/bin/env bash
# Tests the logic of arm.sh: runs its parts on any machine, with hardly any numbers. llama.cpp's programs are replaced
# by stand-ins that answer in the same way.  arm_rehearsal.sh SOURCE BUILD
# shellcheck source=tests/bench/rehearsal.sh
. "$(dirname "$0")/rehearsal.sh"

mkdir -p "$work/llama.cpp/bin"
printf '#!/bin/sh\necho "llama-bench: $*"\n' >"$work/llama.cpp/bin/llama-bench"
cat >"$work/llama.cpp/bin/llama-server" <<'PYTHON'
#!/usr/bin/env python3
import http.server, json, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def answer(self, said):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())
    def do_GET(self): self.answer({"status": "ok"})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        n = asked["n_predict"]
        timings = {"prompt_n": len(asked["prompt"]), "prompt_ms": 1, "predicted_ms": n, "predicted_n": n}
        self.answer({"tokens": [7] * n, "stop_type": "limit", "timings": timings})
    def log_message(self, *said): pass

if "--version" in sys.argv: sys.exit(print("a stand-in"))
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Answers).serve_forever()
PYTHON
chmod +x "$work/llama.cpp/bin"/*

# rehearse FOLDER PART...: runs parts, and unpacks their archive in FOLDER/results
rehearse() {
  local folder=$work/$1
  shift
  QUICK=1 OUT=$folder BUILD=$build LLAMA=$work/llama.cpp tests/bench/arm.sh "$@" >"$folder.said" 2>&1 || fail "arm.sh: $(<"$folder.said")"
  mkdir "$folder/results"
  tar -xzf "$folder"/arm-*.tar.gz --strip-components 1 -C "$folder/results" || fail 'no archive was written'
}

tests/bench/arm.sh kernel >/dev/null 2>&1
[ $? = 2 ] || fail 'an unknown part is not refused'

rehearse all kernels policies peers
grep -hE '^(FAILED|SKIPPED)' "$work/all.said" "$work"/all/results/*.txt && fail "$(cat "$work"/all/results/*.txt)"
grep -qE '^[0-9a-f]{40}$' "$work/all/results/machine.txt" || fail 'machine.txt has no commit'
variants=$("$build/dtrun" ar -p It --backend none 2>&1 | grep -oE 'cpu:[a-z0-9]+' | cut -d: -f2 | grep -v scalar)
for variant in $variants; do
  [ "$(grep -cE "^$variant +q4_k/(8|16) +rounding" "$work/all/results/kernels.txt")" = 2 ] || fail "kernels.txt has no products of $variant"
  [ "$(grep -cE "^## run .*/bench_(attention|limit) -v $variant " "$work/all/results/kernels.txt")" = 3 ] || fail "kernels.txt has no passes of $variant"
done
for said in 'tokens: identical to ar' '^rate .*[0-9]x'; do
  grep -qE "$said" "$work/all/results/policies.txt" || fail "policies.txt has no policies: $(<"$work/all/results/policies.txt")"
done
grep -qE '^llama.cpp plain +[0-9.]+ ' "$work/all/results/peers.txt" || fail "peers.txt has no llama.cpp: $(<"$work/all/results/peers.txt")"
grep -qE '^dtrun rate +[0-9.]+ ' "$work/all/results/peers.txt" || fail 'peers.txt has no dtrun'

# Failures are reported as such, also in the archive.
printf '#!/bin/sh\nexit 1\n' >"$work/llama.cpp/bin/llama-server"
rehearse broken peers
grep -q '^FAILED: python3 tests/bench/compare_peers.py' "$work/broken.said" || fail "no failure is reported: $(<"$work/broken.said")"
grep -q '^FAILED' "$work/broken/results/peers.txt" || fail 'the archive does not contain the failure'
