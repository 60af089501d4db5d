#!/usr/bin/env bash
# Builds tests/native once per sanitizer in build/sanitize and runs it: sanitize.sh [EFFORT]
set -euo pipefail
cd "$(dirname "$0")/.."
for sanitizer in address thread; do
  into=build/sanitize/$sanitizer
  mkdir -p "$into"
  echo "[sanitize] $sanitizer"
  { cmake -G Ninja -S tests/native -B "$into" -DDVM_SANITIZE=$sanitizer && cmake --build "$into"; } >"$into/build.log" 2>&1 || { tail -40 "$into/build.log"; exit 1; }
  "$into/native_tests" --effort "${1:-1}"
  # The kernels once more as lesser processors run them.
  for level in avx2 baseline; do DVM_SIMD=$level "$into/native_tests" random_programs --effort "${1:-1}"; done
done
