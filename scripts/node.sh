#!/usr/bin/env bash
# Checks Node and installs the extension's development packages exactly as locked. Run by make.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v node >/dev/null && command -v npm >/dev/null || {
  echo "Node with npm is missing: install Node 20 or newer (https://nodejs.org, or your distribution's nodejs and npm)." >&2; exit 1; }
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || { echo "Node $(node --version) is too old: the extension's build and tests need Node 20 or newer." >&2; exit 1; }
echo "[node] npm ci (Node $(node --version))"
# No package here needs its install script.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
