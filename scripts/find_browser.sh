#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests; installs one when there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

find_it() {
  if [ -n "${RLCAST_CHROMIUM:-}" ]; then echo "$RLCAST_CHROMIUM"; return; fi
  command -v chromium || command -v chromium-browser || command -v google-chrome ||
    .venv/bin/python - <<'PY'
from pathlib import Path
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    path = Path(p.chromium.executable_path)
print(path) if path.exists() else exit(1)
PY
}
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi; }
from_debian() { as_root apt-get update -q && as_root apt-get install -y -q chromium; }
from_playwright() { .venv/bin/python -m playwright install --with-deps chromium; }

find_it 2>/dev/null && exit 0
echo "installing Chromium for the browser tests …" >&2
# Debian's own package is a real Chromium; Ubuntu's is a snap that tests cannot use.
if grep -qs '^ID=debian' /etc/os-release; then
  from_debian >&2 || from_playwright >&2
else
  from_playwright >&2 || from_debian >&2
fi
find_it || { echo "no Chromium found: install one, or set RLCAST_CHROMIUM to its path" >&2; exit 1; }
