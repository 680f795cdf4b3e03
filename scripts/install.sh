#!/usr/bin/env bash
# Makes a virtual environment with the service, the trainer (CPU build of torch) and the test tools, at the
# versions pinned in requirements.lock.  Usage: scripts/install.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
venv="${1:-.venv}"
python="${PYTHON:-python3}"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi; }

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "rlcast needs Python 3.11 or newer; set PYTHON to one (found: $("$python" --version 2>&1 || echo none))" >&2
  exit 1
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then # Debian and Ubuntu ship it apart
  { as_root apt-get update -q && as_root apt-get install -y -q python3-venv; } ||
    { echo "Python's venv module is missing: install the package python3-venv" >&2; exit 1; }
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
echo "installing into $venv …"
"${pip[@]}" install -q -c requirements.lock -e '.[service,runner,dev]' jaxtyping filelock jinja2 networkx sympy setuptools

# torch: on Linux the default build brings gigabytes of CUDA. Take the CPU build where its index can be reached,
# or whatever build of the pinned version pip finds. A GPU host installs 'rlcast[runner-gpu]' instead.
torch="$(grep -i '^torch==' requirements.lock)"
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  if [ "$(uname -s)" = Linux ]; then
    "${pip[@]}" install -q --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu "$torch" 2>/dev/null ||
      "${pip[@]}" install -q -c requirements.lock "$torch"
  else
    "${pip[@]}" install -q -c requirements.lock "$torch"
  fi
fi
"${pip[@]}" install -q -c requirements.lock -e '.[runner-cpu,trl]'
"${pip[@]}" install -q -c requirements.lock -e '.[tasks]' ||
  echo "left out: reasoning-gym, which needs a C compiler here; its tests will be skipped" >&2
