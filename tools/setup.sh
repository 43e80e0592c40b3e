# Sourced by demo.sh and test.sh: makes `.venv` with all of requirements.txt, when it is
# missing or requirements.txt has changed, and activates it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

find_python() {
  local candidate
  for candidate in python3.13 python3.12 python3.11 python3 python; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "error: Python 3.11, 3.12 or 3.13 is needed (keras 3.15 takes no older one); found: $(python3 --version 2>&1)" >&2
  return 1
}

set_up() {
  local python
  if cmp -s requirements.txt .venv/installed-requirements.txt && [ -x .venv/bin/python ]; then
    return
  fi
  python=$(find_python) || return 1
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "error: $python has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2
    return 1
  fi
  echo "Installing requirements.txt into .venv (about 3 GB; minutes the first time) ..."
  "$python" -m venv --clear .venv || return 1
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt || return 1
  cp requirements.txt .venv/installed-requirements.txt
}

# Two programs started at once install once: the second waits.
exec 9>.venv.lock
flock 9 2>/dev/null || true # not on every system
set_up || exit 1
exec 9>&-
export PATH="$PWD/.venv/bin:$PATH"
export TF_CPP_MIN_LOG_LEVEL=2
