# Sourced: system packages that are missing are collected, then installed in one go if that is allowed, else named.
#   need_command PROGRAM PACKAGE   need_package PACKAGE   install_needed
needed=()

need_package() { needed+=("$1"); }

need_command() { command -v "$1" >/dev/null || need_package "$2"; }

install_needed() {
  [ ${#needed[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${needed[*]}. Install with your package manager (Debian, Ubuntu: sudo apt-get install ${needed[*]}), then run this again." >&2
    exit 1
  fi
  echo "[system] apt-get install ${needed[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${needed[@]}" >/dev/null
  needed=()
}
