#!/usr/bin/env bash
# Makes .venv with the build tools, MindSpore and everything the tests need. Run by `make setup`; finished steps are skipped there.
#
# usage: setup.sh venv | packages | native
# env:   PYTHON  interpreter to use (default: the first of python3, python3.12, python3.11, python3.10 that fits)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh
say() { printf '[setup] %s\n' "$*"; }

# pip draws progress bars on a terminal; elsewhere one line for each thing that takes time, and its errors.
install() {
  local pip=(.venv/bin/python -m pip --disable-pip-version-check install "$@")
  if [ -t 1 ]; then "${pip[@]}"; else "${pip[@]}" 2>&1 | sed -un '/^ *Downloading\|^ *Building\|^Successfully\|[Ee][Rr][Rr][Oo][Rr]/p'; fi
}

fits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.12 python3.11 python3.10}; do
    if fits "$candidate"; then command -v "$candidate"; return; fi
  done
  echo "no Python 3.10, 3.11 or 3.12 found (MindSpore 2.10 has no build for others): install one, or name it: make setup PYTHON=/path/to/python" >&2
  exit 1
}

make_venv() {
  local python version
  python=$(find_python)
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  need_command g++ build-essential
  "$python" -c 'import ensurepip, venv' 2>/dev/null || need_package "python$version-venv"
  "$python" -c 'import os, sysconfig; assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null ||
    need_package "python$version-dev"
  install_needed
  say "1/3 virtual environment .venv (Python $version)"
  [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || "$python" -m venv --clear .venv
}

install_packages() {
  say "2/3 packages: MindSpore 2.10 and what the build and the tests need (about 900 MB the first time)"
  install "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.22" ninja
  # The requirements of the extras in pyproject.toml, without building the project itself: that is the next step.
  .venv/bin/python scripts/requirements.py adapter mindspore demo test lint >build/requirements.txt
  install -r build/requirements.txt
}

build_native() {
  say "3/3 native core (the first build takes about two minutes)"
  install --no-build-isolation --no-deps -e .
  say "ready: $(.venv/bin/python -c 'import dvm_core, sys; print("dvm_core", dvm_core.__version__, "on Python", sys.version.split()[0])')"
}

mkdir -p build
case ${1:?usage: setup.sh venv|packages|native} in
  venv) make_venv ;;
  packages) install_packages ;;
  native) build_native ;;
  *) echo "setup.sh: no step named $1" >&2; exit 2 ;;
esac
