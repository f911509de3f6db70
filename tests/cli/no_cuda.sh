#!/usr/bin/env bash
# A dtrun that is built with CUDA, on a machine without it: it runs in a root with the libraries that the program is linked with, but
# without any library of CUDA or of its driver.
. "$(dirname "$0")/helpers.sh"
prompt=(-p 'The old man went down to the' -n 12)

it_is_linked_with_no_library_of_cuda() {
  ldd "$dtrun" >libraries || fail 'ldd'
  ! grep -E 'libcu|libnv' libraries || fail 'it is'
}
it_runs_on_the_CPU_and_says_why_not_on_a_GPU() {
  local enter=(unshare -r chroot)
  [ "$(id -u)" -eq 0 ] && enter=(chroot)
  "${enter[@]}" / /bin/true 2>/dev/null || { echo '  skipped: a chroot is not allowed'; return 0; }
  mkdir -p root/dtrun/policies root/tmp
  ldd "$dtrun" | grep -oE '/[^ ]+' | while read -r file; do mkdir -p "root$(dirname "$file")" && cp -L "$file" "root$file"; done
  cp "$dtrun" root/dtrun/ && cp -r "$source_dir"/policies/*.lua root/dtrun/policies/
  mkdir root/dtrun/models && cp -r "$models"/mini-* root/dtrun/models/
  inside() { run "${enter[@]}" root /usr/bin/env -i DTRUN_HOME=/dtrun /dtrun/dtrun "$@"; }
  mkdir -p root/usr/bin && cp /usr/bin/env root/usr/bin/
  for backend in auto cpu; do
    inside linear --backend "$backend" "${prompt[@]}" --json /tmp/result.json
    [ "$status" -eq 0 ] || fail "--backend $backend: exit status $status"
    grep -qE '"backend":[[:space:]]*"cpu:' root/tmp/result.json || fail "--backend $backend: another backend than the CPU"
  done
  inside ar --backend cuda "${prompt[@]}"
  [ "$status" -eq 1 ] || fail "--backend cuda: exit status $status, expected 1"
  says_in_one_line 'no GPU can be used: .*--backend cpu' ar --backend cuda
}
run_tests
