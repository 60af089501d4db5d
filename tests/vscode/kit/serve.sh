#!/usr/bin/env bash
# Runs VS Code's workbench (code-server) in the foreground; SIGTERM ends it.
#
# usage: serve.sh DIR PORT STATE FOLDER [EXT.vsix ...]
#   DIR     where setup.sh installed code-server
#   STATE   throw-away directory for user data, installed extensions and configuration
#   FOLDER  workspace to open; each .vsix is installed first
# env:  SETTINGS  the user's settings.json; TRUST=ask: the folder is not trusted until somebody says so
set -euo pipefail
DIR=${1:?}; PORT=${2:?}; STATE=${3:?}; FOLDER=${4:?}; shift 4
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$STATE/data/User" "$STATE/ext"
STATE=$(cd "$STATE" && pwd)
cp "${SETTINGS:-$here/settings.json}" "$STATE/data/User/settings.json"
export XDG_CONFIG_HOME=$STATE/xdg/config XDG_DATA_HOME=$STATE/xdg/data XDG_CACHE_HOME=$STATE/xdg/cache
# The marketplace is a closed port: a look-up fails at once instead of timing out.
export EXTENSIONS_GALLERY='{"serviceUrl":"http://127.0.0.1:9/","itemUrl":"","resourceUrlTemplate":""}'
unset VSCODE_IPC_HOOK_CLI

server=("$DIR/node_modules/code-server/out/node/entry.js" --user-data-dir "$STATE/data" --extensions-dir "$STATE/ext")
trust=(--disable-workspace-trust); [ "${TRUST:-}" != ask ] || trust=()
for vsix in "$@"; do node "${server[@]}" --install-extension "$vsix" --force; done
exec node "${server[@]}" --auth none --bind-addr "127.0.0.1:$PORT" --disable-telemetry --disable-update-check \
  "${trust[@]}" --disable-getting-started-override --ignore-last-opened "$FOLDER"
