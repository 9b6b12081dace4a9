# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034 # Backquotes of Markdown; docs_test.sh uses the variables.
# For docs_test.sh to source: what pages say, without a cluster. Each check_NAME prints a line for each thing that is
# wrong; nothing means that all is well.

readonly marker='# not run in the tests: '

# blocks PAGE FOLDER: each fenced block of the page in a file of its own, FOLDER/LINE.LANGUAGE.
blocks() {
  awk -v folder="$2" '
    !inside && /^```[a-z]+$/ { inside = 1; file = sprintf("%s/%04d.%s", folder, NR + 1, substr($0, 4)); printf "" >file; next }
    inside && /^```$/ { inside = 0; close(file); next }
    inside { print >file }' "$1"
}

# Commands stand in fenced blocks, where they are run: not in indented ones.
check_commands_are_fenced() { # PAGE...
  awk '
    FNR == 1 { fenced = 0 }
    /^```/ { fenced = !fenced }
    !fenced && /^    (\$ )?(kubectl|helm|make|docker|git|scripts\/|build\/|curl|export|cd|skopeo|cmake|tests\/) / {
      print FILENAME ":" FNR ": a command outside of a fenced block: " $0
    }' "$@"
}

# anchors PAGE: those of its headings, as GitHub makes them.
anchors() {
  sed -nE '/^```/,/^```$/d; s/^#+ +//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Links to files of the tree, and to headings in them.
check_links() { # PAGE...
  local page link path anchor
  while IFS=: read -r page link; do
    link=${link#\]\(} link=${link%\)}
    [[ $link != *://* && $link != mailto:* ]] || continue
    path=${link%%#*}
    if [[ -z $path ]]; then path=$page; else path=$(dirname -- "$page")/$path; fi
    if [[ ! -e $path ]]; then
      echo "$page: there is no $link"
    elif [[ $link == *'#'* && $path == *.md ]]; then
      anchor=${link#*#}
      anchors "$path" | grep -qxF -e "$anchor" || echo "$page: there is no heading $link"
    fi
  done < <(for page; do sed 's/`[^`]*`/code/g' "$page" | grep -oE '\]\([^)[:space:]]+\)' | sed "s|^|$page:|"; done)
}

# Each test that SECURITY.md names exists: "`FILE_test`: `Name`, `Name`" or "`FILE_test.sh`", below tests/.
check_named_tests() { # PAGE
  local word file=
  while read -r word; do
    case $word in
      *_test.sh) [[ -e tests/$word ]] || echo "$1: there is no tests/$word" ;;
      *_test)
        file=tests/$word.cc
        [[ -e $file ]] || echo "$1: there is no $file"
        ;;
      *) grep -qE "^TEST(_[FP])?\([A-Za-z0-9]+, $word\)" "$file" 2>/dev/null || echo "$1: there is no test $word in $file" ;;
    esac
  done < <(grep '^| ' "$1" | sed -E 's/^.*\| ([^|]*) \|$/\1/' | grep -oE '`[a-z0-9_/]+_test(\.sh)?`|`[A-Z][A-Za-z0-9]+`' | tr -d '`' |
    grep -v '^API$')
}
