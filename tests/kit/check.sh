# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For test scripts to source: counts checks in `passed` and `failed`.

passed=0
failed=0

# check NAME COMMAND...: one line, ok or FAIL with what the command printed.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok    $name"
    passed=$((passed + 1))
  else
    echo "FAIL  $name"
    tail -n 15 <<<"$output" | sed 's/^/      /'
    failed=$((failed + 1))
  fi
}
need() { # need NAME COMMAND...: a check without which the others make no sense.
  local before=$failed
  check "$@"
  ((failed == before)) || finish
}
fails() { ! "$@"; }
equals() { # equals WANT COMMAND...: the command prints exactly WANT.
  local want=$1 got
  shift
  got=$("$@") || return 1
  [[ $got == "$want" ]] || { echo "want: $want"; echo "got:  $got"; return 1; }
}
prints() { # prints PATTERN COMMAND...: the output matches, whatever the exit status.
  local pattern=$1 got
  shift
  got=$("$@" 2>&1)
  grep -q -e "$pattern" <<<"$got" || { echo "no '$pattern' in: $got"; return 1; }
}

http() { # http PORT PATH: the answer, with its status line.
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&3
  timeout 5 cat <&3
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
  local deadline=$((SECONDS + $1)) output
  shift
  until output=$("$@" 2>&1); do
    if ((SECONDS >= deadline)); then
      echo "not within the deadline: $*"
      echo "$output"
      return 1
    fi
    sleep 0.2
  done
}

# finish: prints the count and ends the script.
finish() {
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}
