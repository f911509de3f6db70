#!/usr/bin/env bash
# What an installation contains in addition to the program: manual, completion, library, documents; how it is removed; and the Debian
# package: package.sh DTRUN SOURCE BUILD
. "$(dirname "$0")/helpers.sh"
build_dir=$(realpath "$3")

install_here() { cmake --install "$build_dir" --prefix "$PWD/here" >install.log 2>&1 || { cat install.log; fail 'cmake --install'; }; }
# completes FIRST WORD...: FIRST is the first candidate for the last word
completes() {
  local first=$1
  shift
  succeeds complete "$@"
  [ "$(head -1 stdout | cut -f1)" = "$first" ] || fail "complete $*: expected '$first', got '$(head -1 stdout)'"
}

it_brings_a_manual_with_what_help_says() {
  install_here
  local page=here/share/man/man1/dtrun.1
  mandoc -T lint -W error $page || fail 'no manual page that mandoc takes'
  mandoc -T ascii $page | col -b >page
  succeeds --help
  grep -oE '^  (dtrun [^ ]+|-[^ ]*(, --[a-z-]+)?)' stdout | sed 's/^ *//' >said
  [ "$(wc -l <said)" -gt 40 ] || fail 'too little is said by --help'
  while read -r word; do grep -qF -e "$word" page || fail "no '$word' in the manual"; done <said
  for word in 'EXIT STATUS' DTRUN_HOME DTRUN_TARGET; do grep -qF "$word" page || fail "no '$word' in the manual"; done
}
# Compares what cmake --install takes from the build folder with what the target makes from nothing.
it_takes_nothing_from_the_build_folder_that_the_target_product_does_not_make() {
  [ -f "$build_dir/build.ninja" ] || { echo '  skipped: it asks Ninja'; return 0; }
  # files that exist after the configuration are not made by a target
  grep -oE "\"$build_dir/[^\"]*\"" "$build_dir/cmake_install.cmake" | tr -d '"' | sed "s:^$build_dir/::" | grep -vE '(\.cmake|\.txt|\.pc|^include/dtrun|\})$' | sort -u >taken
  for file in dtrun dtrun.1 libdtrun.so; do grep -qx "$file" taken || fail "$file is not installed"; done
  ninja -C "$build_dir" -t commands product >commands || fail 'no target product'
  for file in $(cat taken); do grep -qE "[ /]${file//./\\.}( |$)" commands || fail "product does not make $file"; done
  grep -oE ' -o tests/[^ ]*' commands >tests && fail "product makes a test: $(head -1 tests)"
  true
}
it_brings_a_unit_and_a_manual_of_the_server() {
  [ -x "$build_dir/dtrun-serve" ] || { echo '  skipped: built without libmicrohttpd'; return 0; }
  install_here
  local unit=here/lib/systemd/system/dtrun-serve.service
  grep -qx '.so man1/dtrun.1' here/share/man/man1/dtrun-serve.1 || fail 'no manual of dtrun-serve'
  grep -qE 'cache.{1,2}ram' here/share/man/man1/dtrun.1 || fail 'the manual lacks its options'
  grep -qx 'ExecStart=dtrun serve $DTRUN_SERVE_OPTIONS' $unit || fail 'no unit'
  command -v systemd-analyze >/dev/null || { echo '  skipped: no systemd-analyze'; return 0; }
  sed "s:=dtrun :=$PWD/here/bin/dtrun :" $unit >dtrun-serve.service
  systemd-analyze verify --man=no ./dtrun-serve.service >said 2>&1 || fail "$(<said)"
}
it_brings_documents() {
  install_here
  same_text "$source_dir/README.md" here/share/doc/dtrun/README.md
  same_text "$source_dir/LICENSE" here/share/doc/dtrun/LICENSE
}
it_brings_what_the_guides_link_to() {
  install_here
  has_links here/share/dtrun
  [ -f here/share/dtrun/policies/rate_iteration.svg ] && [ -f here/share/dtrun/runtime/GLOSSARY.md ] || fail 'the test finds nothing'
}
it_knows_what_a_word_may_become() {
  completes dynatree dyna
  completes dynatree -n 5 -p text dyna
  completes --prompt linear --prompt
  completes dynatree linear --compare dyna
  completes K= linear --set ''
  completes history=true dynatree --set history=t
  completes narrow dynatree --preset n
  completes tuned linear --preset tu
  completes sweep run sw
  completes chat cha
  completes linear chat lin
  completes q8 linear --weights ''
  for words in 'linear dyna' 'run sweep li' 'linear -p x' 'linear --json x'; do
    succeeds complete $words
    [ -s stdout ] && fail "complete $words: something"
  done
  grep -q . <("$dtrun" complete '' | grep -P '^rate\t.+') || fail 'a policy without what it is'
}
it_completes_in_bash() {
  install_here
  PATH=$PWD/here/bin:$PATH
  # asks WORD...: calls the completion as bash does, with words split at '='
  asks() {
    bash -c 'compopt() { :; }; . here/share/bash-completion/completions/dtrun; COMP_WORDS=(dtrun "$@"); COMP_CWORD=$#; _dtrun; echo "${COMPREPLY[*]}"' - "$@"
  }
  [ "$(asks dyna)" = dynatree ] || fail "$(asks dyna)"
  [ "$(asks dynatree --set hist)" = history= ] || fail "$(asks dynatree --set hist)"
  [ "$(asks dynatree --set history = t)" = true ] || fail "$(asks dynatree --set history = t)"
  [ "$(asks dynatree --set history =)" = 'true false' ] || fail "$(asks dynatree --set history =)"
  [ "$(asks run sw)" = sweep ] || fail "$(asks run sw)"
  mkdir -p hub/models--o--n/refs hub/models--o--n/snapshots/0123abcd
  printf 0123abcd >hub/models--o--n/refs/main
  touch hub/models--o--n/snapshots/0123abcd/{a,b}-Q8_0.gguf
  export HF_HUB_CACHE=hub
  [ "$(asks rm o/n)" = 'o/n:a-Q8_0.gguf o/n:b-Q8_0.gguf' ] || fail "$(asks rm o/n)"
  [ "$(asks rm o/n : b)" = b-Q8_0.gguf ] || fail "$(asks rm o/n : b)"
  [ "$(asks rm o/n :)" = 'a-Q8_0.gguf b-Q8_0.gguf' ] || fail "$(asks rm o/n :)"
}
it_completes_in_zsh() {
  install_here
  PATH=$PWD/here/bin:$PATH
  asks() {
    zsh -fc 'compadd() { print -l -- "${found[@]}" }; _files() { print files }; words=(dtrun "$@"); CURRENT=$#words; PREFIX=$words[-1]; . here/share/zsh/site-functions/_dtrun' - "$@"
  }
  [ "$(asks dyna)" = dynatree ] || fail "$(asks dyna)"
  [ "$(asks dynatree --set history=t)" = history=true ] || fail "$(asks dynatree --set history=t)"
  [ "$(asks linear --json r)" = files ] || fail "$(asks linear --json r)"
}
it_completes_in_fish() {
  install_here
  PATH=$PWD/here/bin:$PATH
  export HOME=$PWD
  asks() { fish --no-config -c ". here/share/fish/vendor_completions.d/dtrun.fish; complete -C '$*'" | cut -f1; }
  [ "$(asks dtrun dyna)" = dynatree ] || fail "$(asks dtrun dyna)"
  [ "$(asks dtrun dynatree --preset n)" = narrow ] || fail "$(asks dtrun dynatree --preset n)"
  [ "$(asks dtrun run sw)" = sweep ] || fail "$(asks dtrun run sw)"
}
it_brings_a_library_that_a_c_program_links() {
  install_here
  mv here moved
  cat >program.c <<'C'
#include <dtrun.h>
#include <stdio.h>
#include <string.h>
static bool show(void *user, const char *bytes, size_t len) { return fwrite(bytes, 1, len, user) == len; }
int main(void) {
  dtl_policy_options how = {.policy = "linear"};
  dtl_policy *policy; dtl_result result; dt_error failure; dt_pair *pair; dt_error err; char *target, *draft;
  if (dtl_resolve_models(NULL, NULL, DTL_NEEDS_DRAFT, &target, &draft, &failure) || dtl_policy_open(&how, &policy, &failure)) return puts(failure.message), 1;
  if (dt_pair_open(&(dt_pair_options){.target = target, .draft = draft}, &pair, &err)) return puts(err.message), 1;
  dtl_prompt prompt = {.text = "It was a dark night", .len = strlen("It was a dark night")};
  return dtl_generate(pair, policy, &(dtl_request){.prompts = &prompt, .n = 1, .seq = {.max_tokens = 30}, .on_text = show, .user = stdout}, &result, &failure);
}
C
  export PKG_CONFIG_PATH=$PWD/moved/lib/pkgconfig
  [ "$(pkg-config --modversion dtrun)" = "$("$dtrun" --version | cut -d' ' -f2)" ] || fail 'another version'
  cc -Wall -Werror $(pkg-config --cflags dtrun) program.c $(pkg-config --libs dtrun) -o program || fail 'it does not link'
  succeeds linear -p 'It was a dark night' -n 30
  mv stdout expected
  run ./program
  [ "$status" -eq 0 ] || fail "the program: exit status $status"
  same_text expected stdout
  printf '#include <dtrun.h>\nint main() { return dt_version() == nullptr; }\n' >program.cc
  c++ -Wall -Werror $(pkg-config --cflags dtrun) program.cc $(pkg-config --libs dtrun) -o program || fail 'no C++ program'
  ./program || fail 'the C++ program'
}
it_exports_what_the_headers_declare_and_nothing_else() {
  install_here
  nm -D --defined-only here/lib/libdtrun.so | awk '{ print $3 }' | sort >exported
  sed -E 's://.*::' $(find here/include/dtrun -name '*.h') | tr '\n' ' ' | sed -E 's:/\*([^*]|\*[^/])*\*+/::g' | grep -oE '\b(dtl?|tree)_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >declared
  diff <(comm -23 exported declared) /dev/null || fail 'exported, not declared'
  for name in dt_pair_open dt_verify_tree dt_tree_branch dtl_generate dtl_bridge_call; do grep -qx $name exported || fail "no $name"; done
}
it_goes_again() {
  install_here
  touch here/share/man/man1/other.1
  (cd "$build_dir" && cmake --build . --target uninstall) >log 2>&1 || { cat log; fail 'uninstall'; }
  [ "$(find here -type f -o -type l)" = here/share/man/man1/other.1 ] || fail "left: $(find here -type f)"
  [ -e here/share/dtrun ] || [ -e here/include/dtrun ] && fail 'folders are left'
  true
}
# Prints the files of the libraries that a package depends on, directly or not, as they are on this machine.
files_needed_by() {
  local left=("$@") seen=' ' name own
  own=$(dpkg --print-architecture) # libraries of other architectures may be installed too, for `scripts/test arm`
  while [ ${#left[@]} -gt 0 ]; do
    name=${left[0]} left=("${left[@]:1}")
    [[ $seen == *" $name "* ]] && continue
    seen+="$name "
    { dpkg -L "${name%:*}:$own" 2>/dev/null || dpkg -L "$name" 2>/dev/null; } | grep -E '\.so(\.[0-9]+)*$'
    mapfile -t -O "${#left[@]}" left < <(dpkg-query -W -f '${Depends}' "${name%:*}:$own" 2>/dev/null | sed -E 's/\([^)]*\)//g; s/\|[^,]*//g; s/,/\n/g' | tr -d ' ' | grep .)
  done
}
it_is_a_debian_package_that_runs_with_what_it_depends_on_and_nothing_else() {
  command -v dpkg-shlibdeps >/dev/null || { echo '  skipped: no dpkg-shlibdeps'; return 0; }
  cpack --config "$build_dir/CPackConfig.cmake" -B "$PWD/pack" >log 2>&1 || { cat log; fail cpack; }
  local package depends
  package=$(ls pack/*.deb)
  depends=$(dpkg-deb -f "$package" Depends)
  grep -q 'liblua5.4-0' <<<"$depends" || fail "depends on $depends"
  dpkg-deb -c "$package" | awk '{ print $6 }' >files
  for file in bin/dtrun share/man/man1/dtrun.1; do grep -qx "./usr/$file" files || fail "the package lacks $file"; done
  if [ -x "$build_dir/dtrun-serve" ]; then
    for file in lib/dtrun/dtrun-serve lib/systemd/system/dtrun-serve.service share/man/man1/dtrun-serve.1; do
      grep -qx "./usr/$file" files || fail "the package lacks $file"
    done
  fi
  mkdir -p root/var/lib/dpkg/{info,updates} root/usr/{lib,lib64,bin,sbin} root/dev root/etc
  touch root/var/lib/dpkg/status root/dev/null
  for folder in lib lib64 bin sbin; do ln -s usr/$folder root/$folder; done
  files_needed_by $(sed -E 's/\([^)]*\)//g; s/,/ /g' <<<"$depends") | while read -r file; do
    mkdir -p "root$(dirname "$file")" && cp -a "$file" "root$file"
  done
  cp /bin/dash root/bin/sh && cp /sbin/ldconfig root/sbin/ # every Debian has them
  dpkg --root="$PWD/root" --force-not-root --force-depends --log=/dev/null --install "$package" >log 2>&1 || { cat log; fail 'dpkg --install'; }
  local enter=(unshare -r chroot)
  [ "$(id -u)" -eq 0 ] && enter=(chroot)
  "${enter[@]}" / /bin/true 2>/dev/null || { echo '  skipped from here on: a chroot is not allowed'; return 0; }
  succeeds ar -p 'It was a dark night' -n 20
  mv stdout expected
  run "${enter[@]}" root /usr/bin/dtrun linear -p 'It was a dark night' -n 20
  [ "$status" -eq 0 ] || fail "exit status $status in a root of its own"
  same_text expected stdout
  dpkg --root="$PWD/root" --force-not-root --force-depends --log=/dev/null --purge dtrun >log 2>&1 || { cat log; fail 'dpkg --purge'; }
  [ -e root/usr/bin/dtrun ] || [ -e root/usr/share/dtrun ] && fail 'something is left'
  true
}

run_tests
