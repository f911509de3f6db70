# shellcheck shell=bash disable=SC2034
# Shared by rehearsals of scripts for other machines, with arguments SOURCE BUILD: changes to the source folder and
# makes a folder to work in.
set -u
cd "$1" || exit 1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf '%s\n' "$1"
  exit 1
}
