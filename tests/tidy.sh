#!/usr/bin/env bash
# Runs clang-tidy, including clang's analyzer, on all C of the product: tests/tidy.sh BUILD_FOLDER .clang-tidy lists the
# checks.
set -u
cd "$(dirname "$0")/.." || exit 1
command -v clang-tidy >/dev/null || { echo 'skipped: clang-tidy is not installed'; exit 77; }
# Leaves out the kernels, which are built several times under different names, MPI's module, and the two files that
# analyze.h wraps.
mapfile -t files < <(find runtime lua -name '*.c' -not -path 'runtime/cpu/*' -not -name mpi.c -not -name status.c -not -name fail.c | sort)
[ "${#files[@]}" -gt 80 ] || { echo "only ${#files[@]} files"; exit 1; }
said=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 8 clang-tidy --quiet -p "$1" --extra-arg=-include \
  --extra-arg="$PWD/tests/analyze.h" --extra-arg="-I$PWD/runtime" --extra-arg="-I$PWD/lua" 2>&1)
status=$? # not 0 if clang-tidy itself fails; then it may have missed something
found=$(grep -E ' (warning|error): ' <<<"$said" | sort -u)
[ -z "$found" ] || { echo "$found"; exit 1; }
[ "$status" = 0 ] || { echo "clang-tidy failed, xargs exited with status $status:"; tail -5 <<<"$said"; exit 1; }
