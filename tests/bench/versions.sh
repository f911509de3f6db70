#!/usr/bin/env bash
# Compares the speed of the products of two versions of dtrun, each built in its own clone (cmake --preset release; the target
# bench_products is enough), call by call in one process: versions.sh OLD_CLONE NEW_CLONE OUTPUTS K VARIANT [MS]
set -eu
[ $# -ge 5 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
here=$(dirname "$(realpath "$0")")
old=$1 new=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "$old" "$new"; do
  library=$work/$([ "$version" = "$old" ] && echo old || echo new).so
  gcc -O2 -fPIC -shared -fvisibility=hidden -DVERSION -I"$version/runtime" -I"$version/runtime/cpu" "$here/versions.c" -o "$library" \
    -Wl,--whole-archive "$version/build/runtime/cpu/libdtrun_cpu.a" -Wl,--no-whole-archive "$version/build/libdtrun_runtime.a" \
    "$version/build/runtime/cpu/libdtrun_cpu.a" -lcjson -lpcre2-8 -lutf8proc -lsodium -lm -ldl
done
gcc -O2 -D_GNU_SOURCE -I"$new/runtime" -I"$new/runtime/cpu" "$here/versions.c" -o "$work/versions" -ldl
"$work/versions" "$work/old.so" "$work/new.so" "$@" | awk '{ print; fflush(); digits = $1 ~ /16$/ ? "two digits" : "one digit"; logs[digits] += log($NF); n[digits]++ }
  END { for (d in n) printf "%s: the geometric mean of %d medians is %.4f\n", d, n[d], exp(logs[d] / n[d]) }'
