# shellcheck shell=bash disable=SC2034
# What rehearsals of scripts for other machines begin with, given SOURCE BUILD: it goes to the source, and has a folder to work in.
set -u
cd "$1" || exit 1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf '%s\n' "$1"
  exit 1
}
