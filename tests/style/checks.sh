# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by style_test.sh. Each check_NAME looks at the tree below the current folder and prints one line for each
# thing that is wrong; nothing means that all is well. The tables are read from $style.
: "${style:?}"

source_folders=(clientlib crds controllers nodeagent tests bench examples)

# files PATTERN...: all files of the tree with such a name, without build output.
files() {
  local names=() pattern
  for pattern; do names+=(-o -name "$pattern"); done
  find . \( -path ./build -o -path ./.git -o -path ./.cache \) -prune -o -type f \( "${names[@]:1}" \) -print |
    sed 's|^\./||' | sort
}
code_files() { files '*.h' '*.cc' | grep -E "^($(IFS='|'; echo "${source_folders[*]}"))/" || true; }
scripts() { find . \( -path ./build -o -path ./.git -o -path ./.cache \) -prune -o -type f -perm -u+x -print0 |
  xargs -0 -r grep -lIm1 '^#!' -- | sed 's|^\./||' | sort; }
source_files() {
  { files '*.h' '*.cc' '*.go' '*.mod' '*.sh' '*.cmake' '*.yaml' '*.yml' CMakeLists.txt Makefile; scripts; } | sort -u
}

# read_table FILE: into the associative array `table`; @names are replaced by their lists.
read_table() {
  local key value name
  table=()
  while IFS=: read -r key value; do
    [[ -z $key || $key == \#* ]] || table[$key]=$value
  done <"$1"
  for key in "${!table[@]}"; do
    while [[ ${table[$key]} =~ @[a-z]+ ]]; do   # A list may use another one.
      name=${BASH_REMATCH[0]}
      table[$key]=${table[$key]/"$name"/${table[$name]}}
    done
  done
}

# includes: "FILE:LINE:HEADER" for each include, the header still with its quotes or brackets.
includes() { # -H and -n; the path is ours and holds no colon.
  code_files | tr '\n' '\0' | xargs -0 -r grep -HnoE -e '^ *# *include *[<"][^>"]+[>"]' -- | sed -E 's/:([0-9]+): *# *include */:\1:/'
}

# folder_of PATH: the longest key of `table` that holds it.
folder_of() {
  local folder=${1%/*}
  while [[ ! -v table[$folder] ]]; do
    [[ $folder == */* ]] || { folder=; break; }
    folder=${folder%/*}
  done
  REPLY=$folder
}

check_arrows() {
  local -A table=()
  local file line header from to allowed found list
  read_table "$style/arrows.txt"
  while IFS=: read -r file line header; do
    [[ $header == \"* ]] || continue
    header=${header//\"/}
    folder_of "$file"
    from=$REPLY
    if [[ -z $from ]]; then
      echo "$file:$line: its folder is not in tests/style/arrows.txt"
      continue
    fi
    folder_of "$header"
    to=$REPLY
    if [[ -z $to ]]; then
      echo "$file:$line: \"$header\" is no path from the root of the tree"
      continue
    fi
    found=0
    read -ra list <<<"${table[$from]}"
    for allowed in "$from" "${list[@]}"; do
      # shellcheck disable=SC2053 # A pattern.
      if [[ $to == $allowed || $to == "${allowed%/\*}" && $allowed == */\* ]]; then found=1; fi
    done
    ((found)) || echo "$file:$line: $from may not include $to (\"$header\")"
  done < <(includes)
}

check_fences() {
  local -A table=()
  local file line header prefix pattern known found list
  read_table "$style/fences.txt"
  while IFS=: read -r file line header; do
    [[ $header == \<*/* ]] || continue
    header=${header//[<>]/}
    known=0 found=0
    for prefix in "${!table[@]}"; do
      [[ $header == "$prefix"* ]] || continue
      known=1
      read -ra list <<<"${table[$prefix]}"
      for pattern in "${list[@]}"; do
        # shellcheck disable=SC2053 # A pattern.
        if [[ $file == $pattern ]]; then found=1; fi
      done
    done
    if ((!known)); then
      echo "$file:$line: <$header> is of no library in tests/style/fences.txt"
    elif ((!found)); then
      echo "$file:$line: <$header> may not be included here"
    fi
  done < <(includes)
}

# Decisions take numbers and give numbers: no I/O, clock, thread, log or random source.
check_pure() {
  local headers='atomic|condition_variable|filesystem|fstream|future|iostream|mutex|random|semaphore|shared_mutex|thread'
  code_files | { grep -E '^controllers/((policy|throughput|measure)/|[^/]+/[^/]*_plan\.)' || true; } | tr '\n' '\0' | xargs -0 -r grep -HnE \
    -e "^#include (<($headers|sys/.*)>|\"clientlib/base/(backoff|bounded_queue|clock|gate|log|wait))|::now\(" -- |
    sed 's/$/  (a decision is pure)/'
}

check_spdx() {
  local file line
  while IFS= read -r file; do
    { IFS= read -r line && [[ $line != '#!'* ]] || IFS= read -r line || true; } <"$file"
    [[ $line == *'SPDX-License-Identifier: Apache-2.0'* ]] || echo "$file: does not start with its SPDX line"
  done < <(source_files)
}

check_sizes() {
  local lines file limit
  while read -r lines file; do
    case $file in
      total) continue ;;
      tests/*.h | tests/kit/*.cc) limit=400 ;;
      tests/*) limit=600 ;;
      *.h) limit=150 ;;
      *) limit=400 ;;
    esac
    ((lines < limit)) || echo "$file: $lines lines, must be under $limit"
  done < <({ files '*.h' '*.cc' '*.go' '*.sh' '*.cmake'; scripts; } | sort -u | tr '\n' '\0' | xargs -0 -r wc -l --)
}

# A path of somebody's machine. Some paths are those of a container image: /tmp/grus, and '.ssh' of its root.
check_paths() {
  local text
  text=$({ source_files; files '*.md' '*.json' '*.txt' '*.tpl'; } | sort -u)
  tr '\n' '\0' <<<"$text" | xargs -0 -r grep -HnE -e '(^|[^A-Za-z0-9_.})/-])/(work|root|home)/' -- |
    grep -vE '/roo[t]/\.ssh' || true
  { grep -E '^(clientlib|crds|controllers|nodeagent|charts)/' <<<"$text" || true; } | tr '\n' '\0' |
    xargs -0 -r grep -HnE -e '(^|[^A-Za-z0-9_.})/-])/tmp(/|\b)' -- | grep -vE '/tmp/grus\b' || true
}

check_todos() {
  source_files | tr '\n' '\0' | xargs -0 -r grep -HnE -e '\b(TO[D]O|FIX[M]E)\b' -- | grep -vE '\bTO[D]O\(#[0-9]+\)' || true
}

# Each source folder has tests; crds/types and crdgen share theirs.
check_tested() {
  local folder
  { files '*.cc' | grep -E '^(clientlib|crds|controllers|nodeagent)/' || true; } | sed -E 's|/[^/]*$||; s|^crds/.*|crds|' |
    sort -u | while IFS= read -r folder; do
      compgen -G "tests/$folder/*_test.cc" >/dev/null || echo "$folder: there is no tests/$folder/*_test.cc"
    done
}

# Code on a page under a link to its file is that file.
check_pages() {
  local page link file
  while IFS=: read -r page link; do
    file=${link#\[\`} file=${file%%\`*}
    if ! diff -q "$file" <(awk -v link="$link" '
        $0 == link { after = 1; next }
        after && /^```cpp$/ { inside = 1; next }
        inside && /^```$/ { exit }
        inside { print }' "$page") >/dev/null; then
      echo "$page: is not as $file"
    fi
  done < <(files '*.md' | tr '\n' '\0' | xargs -0 -r grep -HE -e '^\[`[^`]+\.(h|cc)`\]\([^)]*\)$' --)
}

# The closed list: a rule is added here and there.
rule_ids() { printf '%s\n' L{1..15} I{1..7} W{1..2} W{4..5} Q{1..8} Q10 F{2..5} E{1..7} V{1..2} H{1..6} A{1..5}; }

# Each rule of the closed list has its row in docs/runtime-rules.md, with tests that exist and carry its id.
check_rules() {
  local doc=docs/runtime-rules.md file name id tests entry
  local -A have=() seen=()
  local -a entries names
  while IFS=: read -r file name; do
    have["${file#tests/}:${name##*[, ]}"]=1
  done < <(grep -rHoE --include='*_test.cc' -e '^TEST(_F|_P)?\([A-Za-z0-9]+, *[A-Za-z0-9]+' tests)
  while IFS='|' read -r _ id _ tests _; do
    id=${id// /}
    seen[$id]=1
    mapfile -t entries <<<"${tests//<br>/$'\n'}"
    for entry in "${entries[@]}"; do
      file=${entry%%:*}
      read -ra names <<<"${entry#*:}"
      [[ $entry == *:* && ${#names[@]} -gt 0 ]] || echo "$doc: $id has no test"
      for name in "${names[@]%,}"; do
        [[ -v have["${file// /}.cc:$name"] ]] || echo "$doc: $id: there is no $name in tests/${file// /}.cc"
        [[ $name == "$id"[A-Z]* ]] || echo "$doc: $id: $name does not carry its id"
      done
    done
  done < <(grep -E '^\| [A-Z][0-9]+ \|' "$doc")
  while read -r id; do
    [[ -v seen[$id] ]] || echo "$doc: there is no row of $id"
  done < <(rule_ids)
}
