#!/usr/bin/env bash
# The build with POSIX alone (DTRUN_POSIX). It is compiled with headers that hide the names of Linux and GNU; its
# programs must neither call functions that POSIX lacks nor read the files of Linux, and they must pass the tests for
# every change.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { cmake --preset posix && cmake --build build/posix; } >"$work/log" 2>&1; then
  tail -30 "$work/log"
  exit 1
fi
failed=0

# none WHAT: there must be nothing on standard input
none() {
  if grep . >"$work/found"; then
    sed 's/^/  /' "$work/found"
    echo "FAIL  $1"
    failed=1
  else
    echo "ok    no $1"
  fi
}
# Functions that only Linux or GNU has. dladdr and flock are not among them: runtime/system/unix.c and posix/beyond.c say why.
linux='syscall|sched_(get|set)affinity|sched_getcpu|getauxval|getrandom|madvise|mallopt|malloc_trim|v?asprintf|mem(mem|rchr|pcpy)|strchrnul|strcasestr|strsep|ppoll|epoll_.*|eventfd|signalfd|timerfd_.*|accept4|pipe2|dup3|inotify_.*|memfd_create|fallocate|sendfile|prctl|qsort_r|secure_getenv|pthread_.*_np'
programs=(build/posix/dtrun build/posix/dtrun-pull build/posix/dtrun-serve build/posix/libdtrun.so)
for program in "${programs[@]}"; do
  [ -e "$program" ] || continue
  nm -D --undefined-only "$program" | awk '{ sub(/@.*/, "", $2); print $2 }' | grep -xE "$linux" | none "function of Linux in $program"
  strings "$program" | grep -E '^/(proc|sys)/' | none "file of Linux in $program"
done

# rules and prose check the sources, and know the tests of the build for Linux.
ctest --preset posix -j"$(nproc)" -LE 'full|long' -E '^(rules|prose)$' || failed=1
exit $failed
