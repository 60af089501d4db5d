#!/usr/bin/env bash
# Builds tests/native once per sanitizer in build/sanitize and runs it: sanitize.sh [EFFORT]
set -euo pipefail
cd "$(dirname "$0")/.."
has() { grep -qw "$1" /proc/cpuinfo 2>/dev/null; }
# The kernels of every level that this processor runs; which one is of no matter to races.
levels=baseline
if has avx2; then levels="$levels;avx2"; fi
if has avx512vl && has avx512bw && has avx512dq; then levels="$levels;avx512"; fi
check() {
  local into=build/sanitize/$1 level
  mkdir -p "$into"
  echo "[sanitize] $1"
  { cmake -G Ninja -S tests/native -B "$into" -DDVM_SANITIZE="$1" -DDVM_LEVELS="$2" && cmake --build "$into"; } >"$into/build.log" 2>&1 \
    || { tail -40 "$into/build.log"; exit 1; }
  "$into/native_tests" --effort "$3"  # at the highest level
  for level in $(tr ';' '\n' <<<"$2" | sed '$d'); do DVM_SIMD=$level "$into/native_tests" random_programs --effort "$3"; done
}
check address "$levels" "${1:-1}"
check thread baseline "${1:-1}"
