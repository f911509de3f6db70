#!/usr/bin/env bash
# Forty first commands of somebody who has just built dtrun, from README.md and from habit, including wrong ones: each prints something that
# shows what to do next.
#   first.sh DTRUN SOURCE                     checks what they say, with the bundled pair
#   first.sh DTRUN SOURCE --times [MODEL...]  prints, with each MODEL (bundled: that pair) where they take one, the seconds to their
#                                             first byte on either output, to the first of the text, what loading took, and what they say first
. "$(dirname "$0")/helpers.sh"
prompt=$models/prompt.txt

# Exit status; what is printed, on either output; arguments, with "@" for the model. Standard input is "It was a dark night" if the arguments are -n 6, otherwise empty.
commands() {
  cat <<END
2|empty: give --prompt FILE, --text TEXT|
0|faster and not one token different|--help
0|faster and not one token different|-h
0|faster and not one token different|help
0|^dtrun [0-9]|--version
0|^  rate |--list
0|bundled pair: |doctor
2|as in dtrun run SCRIPT; dtrun --list names them|run
2|no driver 'nothing'; installed: bench, costs, |run nothing
0|usage: dtrun run .*sweep|run sweep --help
2|expected dtrun run sweep POLICY|run sweep
0|breadth|dynatree --help
2|did you mean linear|liner -p hello
2|no policy 'nothing'; installed: |nothing -p hello
2|see dtrun --help|--nothing
2|did you mean '--tokens'|-p hello --token 5
2|expected a whole number|-p hello -n many
2|out of range: 0, or 0.001 to 100|-p hello --temp 1000
2|a conversation is dtrun chat|-i
2|no policy './nowhere.lua'; installed: |./nowhere.lua -p hello
2|prompt nowhere.txt: No such file|-f nowhere.txt
2|nowhere|-m nowhere -p hello
2|nowhere.gguf|-m nowhere.gguf -p hello
2|dtrun pull o/n|-m o/n -p hello
2|is a draft head, not a target: give it with --draft, and its target with --target|-m $models/smollm2-head -p hello
2|no config.json in|-m $source_dir/tests -p hello
2|none was found here that is made for|linear -m $models/mini-draft -p hello
2|give --draft DIR|linear -m $models/mini-target --draft none -p hello
2|no folder nofolder/|-p hello --json nofolder/r.json
0|tokens/s|-n 6 @
0|tokens/s|-p hello -n 6 @
0|tokens/s|ar -p hello -n 6 @
0|tokens/s|linear -p hello -n 6 @
0|tokens/s|rate -f $prompt -n 6 @
0|tokens/s|prompt_lookup -f $prompt -n 6 @
0|"schema":|dynatree -p hello -n 6 --json - @
0|2 of 2 sequences|-p hello -p there -n 6 @
0|tokens/s|-p hello -n 6 --temp 0.8 --seed 7 @
0|tokens/s|--template chatml -p hello -n 6 @
0|/help lists commands|chat --template chatml @
END
}

# The options that name a model.
model_options() { [ "$1" = bundled ] || echo "-m $(realpath "$1")"; }

# input ARGUMENTS: prints the standard input for these arguments
input() { case $1 in "-n 6"*) echo "It was a dark night" ;; esac; }

it_is_forty_commands() { [ "$(commands | wc -l)" -eq 40 ] || fail "there are $(commands | wc -l)"; }
it_answers_each_with_a_way_on() {
  commands | while IFS='|' read -r wanted pattern arguments; do
    arguments=${arguments%@}
    input "$arguments" >stdin
    run "$dtrun" $arguments <stdin
    [ "$status" -eq "$wanted" ] || fail "dtrun $arguments: exit status $status, expected $wanted"
    cat stdout stderr | grep -qE -e "$pattern" || fail "dtrun $arguments: nothing like '$pattern'"
    [ "$wanted" -eq 0 ] || [ ! -s stdout ] || fail "dtrun $arguments: something on standard output"
    [ "$wanted" -eq 0 ] || [ "$(wc -l <stderr)" -eq 1 ] || fail "dtrun $arguments: more lines than that of the mistake"
  done || exit 1
}

# Prints for each line of arguments: milliseconds to the first byte, to the first byte of standard output (-: none), and the first line.
times() {
  python3 - "$dtrun" 3<&0 <<'PY'
import os, re, selectors, subprocess, sys, time

for line in open(3):
    arguments = line.rstrip("\n").split()
    text = "It was a dark night\n" if line.startswith("-n 6") else ""
    start = time.monotonic()
    run = subprocess.Popen([sys.argv[1], *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdin.write(text.encode())
    run.stdin.close()
    wait, first, said = selectors.DefaultSelector(), {}, b""
    for pipe in run.stdout, run.stderr: wait.register(pipe, selectors.EVENT_READ)
    while wait.get_map():
        for key, _ in wait.select():
            piece = os.read(key.fd, 65536)
            if not piece: wait.unregister(key.fileobj)
            elif key.fileobj not in first: first[key.fileobj] = time.monotonic() - start
            said += piece
    run.wait()
    words = said.decode(errors="replace")
    loaded = re.search(r"loaded in ([0-9.]+) s", words)
    seen = lambda t: "       -" if t is None else f"{t:8.2f}"
    print(f"{seen(min(first.values(), default=None))} {seen(first.get(run.stdout))} {loaded.group(1) if loaded else '':>6}  "
          f"{' '.join(os.path.basename(a) for a in arguments)[:60]:60}  {words.strip().splitlines()[0][:60]}", flush=True)
PY
}

if [ "${3:-}" = --times ]; then
  shift 3
  [ $# -gt 0 ] || set -- bundled
  echo " any, s  text, s   load  command"
  commands | cut -d'|' -f3 | grep -v '@$' | times
  for model in "$@"; do
    echo "with $model"
    commands | cut -d'|' -f3 | sed -n "s:@\$:$(model_options "$model"):p" | times
  done
  exit
fi
run_tests
