#!/usr/bin/env bash
# Prints which tests of the full tier changed files require, according to needs_full.txt: one expression for ctest -R,
# or nothing.
#   needs_full.sh [REV]     files changed since REV; without it, since the branch left origin's main, or in the last commit
set -u
cd "$(dirname "$0")/.." || exit 1
since=${1:-$(git merge-base origin/main HEAD 2>/dev/null)}
if [ -z "${1:-}" ] && { [ -z "$since" ] || [ "$since" = "$(git rev-parse HEAD)" ]; }; then since=HEAD~1; fi
git rev-parse -q --verify "$since^{commit}" >/dev/null || { echo "needs_full.sh: no commit $since in this clone to compare with" >&2; exit 1; }
mapfile -t changed < <(git diff --name-only "$since" HEAD)

declare -A called=()
while read -ra row; do
  for file in "${changed[@]}"; do
    # shellcheck disable=SC2053 # a pattern
    [[ $file == ${row[0]} ]] && for name in "${row[@]:1}"; do called[$name]=1; done
  done
done < <(grep '^[^#]' tests/needs_full.txt)
[ ${#called[@]} -eq 0 ] || printf '%s\n' "${!called[@]}" | sort | sed 's/\./\\./g; s/\*/.*/g' | paste -sd '|' | sed 's/.*/^(&)$/'
