#!/usr/bin/env bash
# Sets everything up, lints, tests. Arguments go to pytest: tools/test.sh tests/test_losses.py
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
ruff check .
ruff format --check .
python -m pytest "$@"
