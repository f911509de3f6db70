# Environments for Python packages by other authors. DTRUN_CLIENTS names a folder that keeps them for the next run; otherwise each is made
# again.
python3 -c 'import ensurepip, venv' 2>/dev/null || { echo 'SKIPPED: python3 cannot make an environment: apt-get install python3-venv'; exit 77; }

# environment NAME PACKAGES..: makes an environment with these packages at $environment. Status 1: it cannot be made, and a message says so.
environment() {
  local pinned
  environment=${DTRUN_CLIENTS:-$PWD}/$1
  pinned=$(printf '%s\n' "${@:2}")
  if [ ! -x "$environment/bin/python" ] || [ "$(cat "$environment/pinned" 2>/dev/null)" != "$pinned" ]; then
    rm -rf "$environment"
    if ! { python3 -m venv "$environment" && "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"; } >log 2>&1; then
      echo "  SKIPPED: ${*:2} cannot be installed: $(tail -n 1 log)"
      return 1
    fi
    echo "$pinned" >"$environment/pinned"
  fi
}
