#!/usr/bin/env bash
# The prose of guides, comments and messages, by proselint and our own style: tests/prose/lint.py.
. "$(dirname "$0")/../cli/helpers.sh"
python= # Debian's package serves Debian's python3, which need not be the first in PATH
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import proselint' 2>/dev/null && { python=$candidate; break; }
done
[ -n "$python" ] || { echo 'skipped: no proselint (scripts/packages test)'; exit 77; }

lint() { run "$python" "$source_dir/tests/prose/lint.py" "$@"; }

it_finds_no_fault_in_guides_comments_and_messages() {
  lint "$source_dir"
  [ "$status" -eq 0 ] || { sed 's/^/  /' stdout; fail 'tests/prose/style.txt says why'; }
}

# One planted fault in each kind of prose, and by one of proselint's checks of each sort; the same words in code are none.
it_finds_planted_faults_and_nothing_else() {
  mkdir -p runtime lua scripts tests
  cat >GUIDE.md <<'END'
# A guide

The session begins
anew. `anew` is code, "told" is quoted, and [this](told.md) names a file.

| words | a cell |
|---|---|
| the the row | a fate worse than death, accidently |

```sh
echo anew
```
END
  cat >runtime/x.h <<'END'
/* Of a row: its slot. */
int anew; /* the rows that are
           * there */
#define MESSAGE "cannot open %s; told twice"
END
  cat >lua/x.lua <<'END'
-- Tokens are sampled; else
-- the likeliest is taken.
return { name = "anew", doc = "of each prompt that is given" }
END
  printf '#!/bin/sh\necho "measure anew" # $#, reckoned\n' >scripts/x
  printf '// So many rows.\nputs("begin anew with this prompt");\n' >tests/x.c
  lint .
  [ "$status" -eq 1 ] || fail "exit status $status"
  cut -d: -f1-3 stdout >found
  diff - found <<'END' || fail 'other findings'
GUIDE.md:4: anew
GUIDE.md:8: the the
GUIDE.md:8: a fate worse than death
GUIDE.md:8: accidently
lua/x.lua:1: else
lua/x.lua:3: of each prompt that
runtime/x.h:1: Of
runtime/x.h:2: that are there
runtime/x.h:4: told
scripts/x:2: anew
scripts/x:2: reckoned
tests/x.c:1: So many
END
  grep -qxF 'GUIDE.md:4: anew: "again"' stdout || fail 'not what to write instead'
}

run_tests
