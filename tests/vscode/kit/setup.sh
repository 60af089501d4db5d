#!/usr/bin/env bash
# Installs what the workbench tests need into DIR: code-server (VS Code's workbench in a browser) and playwright-core (drives Chromium),
# both from npm. Debian's chromium, ripgrep and a Chinese font are installed when missing and allowed. Finished steps are skipped.
#
# usage: setup.sh DIR
# env:   NODE_HEADERS  prefix whose include/node holds node.h, where it is not beside node
set -euo pipefail
DIR=${1:?usage: setup.sh DIR}
CODE_SERVER=4.100.3   # VS Code 1.100, the last line for Node 20
PLAYWRIGHT=1.65.1
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../../scripts/system.sh
. "$here/../../../scripts/system.sh"
say() { printf '[vscode] %s\n' "$*"; }

need_command rg ripgrep
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  need_package chromium
fi
need_command g++ build-essential
# Chinese characters of the workbench in Chinese: nothing but its pictures depends on them, so where they cannot be installed they are left out.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ -z "$(fc-list :lang=zh-cn 2>/dev/null)" ]; then
  need_package fonts-wqy-microhei
fi
install_needed

# Native modules are compiled against headers beside node, or Debian's; without either node-gyp fetches them itself.
prefix=${NODE_HEADERS:-$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")}
if [ ! -f "$prefix/include/node/node.h" ] && command -v apt-get >/dev/null && dpkg -s nodejs >/dev/null 2>&1; then
  need_package libnode-dev; install_needed
fi
[ -f "$prefix/include/node/node.h" ] && export npm_config_nodedir=$prefix
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_loglevel=error

mkdir -p "$DIR"; cd "$DIR"; DIR=$PWD
export XDG_CONFIG_HOME=$DIR/.config   # code-server writes a configuration file on every run
[ -f package.json ] || echo '{"name":"vscode-tests","private":true}' >package.json

version() { node -p "try { require('./node_modules/$1/package.json').version } catch { '' }"; }
if [ "$(version code-server)" != "$CODE_SERVER" ] || [ "$(version playwright-core)" != "$PLAYWRIGHT" ]; then
  # Its own postinstall builds every optional module and stops at the first that needs a download from elsewhere.
  say "npm install code-server@$CODE_SERVER playwright-core@$PLAYWRIGHT (about 450 MB)"
  npm install --ignore-scripts --save-exact "code-server@$CODE_SERVER" "playwright-core@$PLAYWRIGHT"
fi

# Needed at load even without a password.
node -e "require('argon2')" 2>/dev/null || { say "building argon2"; npm_config_build_from_source=true npm rebuild argon2; }

cd "$DIR/node_modules/code-server/lib/vscode"
if [ ! -f node_modules/.installed ]; then
  say "npm install in lib/vscode"
  npm install --omit=dev --ignore-scripts
  touch node_modules/.installed
fi
# Terminal, file watcher and logger are needed natively; whether a module loads counts, not how its build ended (node-pty's last
# step prepares an IDE file and may fail).
for module in node-pty @parcel/watcher @vscode/spdlog native-watchdog; do
  [ -d "node_modules/$module" ] || continue
  if ! node -e "require('$module')" 2>/dev/null; then
    say "building $module"
    npm rebuild "$module" >"$DIR/build.log" 2>&1 || true
    node -e "require('$module')" || { cat "$DIR/build.log"; exit 1; }
  fi
done
for d in node_modules/@vscode/ripgrep*; do
  [ -d "$d" ] || continue
  [ -x "$d/bin/rg" ] || { mkdir -p "$d/bin"; ln -sf "$(command -v rg)" "$d/bin/rg"; }
done
[ -e node_modules.asar ] || ln -s node_modules node_modules.asar
ln -sf code-linux.sh bin/remote-cli/code-server
ln -sf browser-linux.sh bin/helpers/browser.sh
# The built-in TypeScript extension logs errors without it.
[ -d extensions/node_modules/typescript ] || { say "npm install in lib/vscode/extensions"; (cd extensions && npm install --omit=dev --ignore-scripts); }
say "VS Code $(node "$DIR/node_modules/code-server/out/node/entry.js" --version | tail -1 | sed 's/.*Code //') ready in $DIR"
