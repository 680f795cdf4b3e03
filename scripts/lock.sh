#!/usr/bin/env bash
# Resolves the dependencies of pyproject.toml anew and pins them in requirements.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
pip=("$folder/bin/python" -m pip --disable-pip-version-check)
torch="$(grep -i '^torch==' requirements.lock 2>/dev/null || echo torch==2.13.0)"
"${pip[@]}" install -q "$torch"
"${pip[@]}" install -q '.[service,runner-cpu,tasks,trl,dev]'
{
  echo "# Versions that work together, for every machine: used as constraints by scripts/install.sh."
  echo "# Made by: make lock"
  "${pip[@]}" freeze --exclude rlcast | sed -E 's/^(torch==[0-9.]+).*/\1/; s/ @ .*//' | grep -iv '^nvidia-\|^triton'
} >requirements.lock.new
mv requirements.lock.new requirements.lock
