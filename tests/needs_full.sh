#!/usr/bin/env bash
# Whether files changed that only scripts/test full covers, by the table in tests/README.md: exit status 0 if so.
#   needs_full.sh [REV]     since REV; without it, in the commits of the last day
set -u
cd "$(dirname "$0")/.." || exit 1
since=${1:-$(git rev-list -1 --before='1 day ago' HEAD)}
[ -n "$since" ] || exit 0 # the first day: all is new
mapfile -t patterns < <(sed -nE '/^## Which changes/,/^## How/s/^\| `([^`]+)` \|.*/\1/p' tests/README.md)
while IFS= read -r file; do
  for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2053 # a pattern
    if [[ $file == $pattern ]]; then
      echo "$file changed: only scripts/test full covers all of it"
      exit 0
    fi
  done
done < <(git diff --name-only "$since" HEAD)
exit 1
