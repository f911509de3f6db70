#!/usr/bin/env bash
# Builds the servers that compare_peers.py measures, for all instructions of this machine:
#   tests/bench/peers/build.sh FOLDER [llama.cpp | ik_llama.cpp]...
# Each becomes FOLDER/NAME/bin/llama-server. The sources are pinned: llama.cpp's are those in the package
# llama-cpp-python, ik_llama.cpp's a commit of its repository (IK_LLAMA may name a copy of it). Needs git, cmake, ninja,
# a C++ compiler and pip; each takes some ten minutes on two cores.
set -eu
[ $# -ge 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
llama_package=llama-cpp-python==0.3.36
ik_commit=8337e4cd3861406fc04e0854b1409cd1b027fbc9 # 2026-08-15
mkdir -p "$1"
folder=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- llama.cpp ik_llama.cpp

source_of() {
  case $1 in
  llama.cpp)
    python3 -m pip download -q --no-deps --no-binary :all: -d "$folder" "$llama_package" ||
      { echo "build.sh: cannot download $llama_package from PyPI" >&2; exit 1; }
    tar -xzf "$folder"/llama_cpp_python-*.tar.gz -C "$folder"
    echo "$folder"/llama_cpp_python-*/vendor/llama.cpp
    ;;
  ik_llama.cpp)
    [ -d "$folder/ik_llama.cpp.source" ] ||
      git clone -q "${IK_LLAMA:-https://github.com/ikawrakow/ik_llama.cpp}" "$folder/ik_llama.cpp.source"
    git -C "$folder/ik_llama.cpp.source" checkout -q "$ik_commit"
    echo "$folder/ik_llama.cpp.source"
    ;;
  *)
    echo "build.sh: unknown peer '$1', expected llama.cpp or ik_llama.cpp" >&2
    exit 2
    ;;
  esac
}

# AMX tiles crash at ldtilecfg on some virtual machines, so both are built without them.
no_amx=
[ "$(uname -m)" != x86_64 ] || no_amx="-mno-amx-int8 -mno-amx-tile -mno-amx-bf16"
for name in "$@"; do
  source=$(source_of "$name")
  cmake -S "$source" -B "$folder/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_UI=OFF -DCMAKE_C_FLAGS="$no_amx" -DCMAKE_CXX_FLAGS="$no_amx"
  cmake --build "$folder/$name" --target llama-server
  echo "$folder/$name/bin/llama-server"
done
