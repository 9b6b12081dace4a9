#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The rules of CONTRIBUTING.md that a program can check, on this tree; then the checks themselves, on a small tree
# that is right and on the same tree with one thing wrong at a time.
set -euo pipefail

style=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=tests/style/checks.sh
source "$style/checks.sh"

passed=0
failed=0
result() { # result NAME OUTPUT: passes if there is none.
  if [[ -z $2 ]]; then
    echo "ok    $1"
    passed=$((passed + 1))
  else
    echo "FAIL  $1"
    echo "      ${2//$'\n'/$'\n      '}"
    failed=$((failed + 1))
  fi
}

cd -- "$style/../.."
result "includes follow the arrows" "$(check_arrows)"
result "third-party includes stay in their files" "$(check_fences)"
result "decisions are pure" "$(check_pure)"
result "every source file starts with its SPDX line" "$(check_spdx)"
result "no file is too long" "$(check_sizes)"
result "no path of a machine" "$(check_paths)"
result "no open end without an issue number" "$(check_todos)"
result "every source folder has tests" "$(check_tested)"
result "every rule of clientlib has tests" "$(check_rules)"
result "code on pages is the code of its file" "$(check_pages)"
if scripts/install-packages --format && type -P clang-format >/dev/null; then
  result "the tree is as scripts/format leaves it" "$(scripts/format --check 2>&1 | grep 'error:' || true)"
else
  echo "NOT RUN: the format check needs clang-format"
fi

# --- the checks themselves
fixture=$(mktemp -d)
trap 'rm -rf -- "$fixture"' EXIT
cd -- "$fixture"
spdx='SPDX-License-Identifier: Apache-2.0'

put() { # put PATH [LINE...]: a file with its SPDX line and these lines.
  local path=$1 comment='//'
  shift
  [[ $path == *.h || $path == *.cc || $path == *.go ]] || comment='#'
  mkdir -p -- "$(dirname -- "$path")"
  printf '%s\n' "$comment $spdx" "$@" >"$path"
}

put clientlib/base/error.h
put clientlib/base/log.cc '#include <spdlog/spdlog.h>' '#include "clientlib/base/error.h"'
put clientlib/model/json.cc '#include <rapidjson/reader.h>' '#include "clientlib/base/error.h"'
put clientlib/auth/kubeconfig.cc '#include <yaml-cpp/yaml.h>' '#include "clientlib/model/json.h"' 'cert = "/roo''t/.ssh/id";'
put clientlib/runtime/http_server.cc '#include <boost/beast/core.hpp>' '#include "clientlib/cache/store.h"' '// TO''DO(#12): later'
put clientlib/testing/fake.cc '#include "clientlib/runtime/manager.h"'
put crds/types/job.h '#include "clientlib/model/field.h"'
put crds/crdgen.cc '#include "crds/types/job.h"' '#include <yaml-cpp/yaml.h>'
put controllers/policy/ledger.cc '#include <vector>' '#include "crds/types/job.h"'
put controllers/elastic/reconciler.cc '#include <mutex>' '#include "controllers/policy/ledger.h"' '#include "clientlib/client/client.h"'
put controllers/manager/options.cc '#include <boost/program_options.hpp>' '#include "controllers/elastic/reconciler.h"'
for folder in clientlib/{base,model,auth,runtime,testing} crds controllers/{policy,elastic,manager}; do
  put "tests/$folder/some_test.cc" '#include <gtest/gtest.h>' '#include "tests/kit/server.h"' 'f("/tmp/x");'
done
put scripts/hello 'echo'
sed -i '1i #!/bin/sh' scripts/hello
chmod +x scripts/hello

rules_doc() { # rules_doc [ID CELL...]: the table of rules, right but for this row; without a cell it is missing.
  local id cells
  put docs/runtime-rules.md
  while read -r id; do
    cells=("says" "clientlib/base/rules_test: ${id}Holds" "")
    if [[ $id == "${1-}" ]]; then
      (($# > 1)) || continue
      cells=("${@:2}")
    fi
    (IFS='|' && echo "| $id |${cells[*]}|") >>docs/runtime-rules.md
  done < <(rule_ids)
}
mapfile -t rules_tests < <(rule_ids | sed 's/.*/TEST_F(Rules, &Holds) {/')
put tests/clientlib/base/rules_test.cc "${rules_tests[@]}" 'TEST(Rules, OfNone) {'
rules_doc

accepts() { result "a right tree passes $1" "$("check_$1")"; }
for check in arrows fences pure spdx sizes paths todos tested rules pages; do accepts "$check"; done

# refuses CHECK PATH: the check names this file and no other. Then the file is taken away again.
refuses() {
  local check=$1 path=$2 output
  output=$("check_$check" | cut -d: -f1 | sort -u)
  if [[ $output == "$path" ]]; then output=; else output="named: ${output:-nothing}"; fi
  result "$check refuses $path" "$output"
  rm -r -- "$path"
}
wrong() { # wrong CHECK PATH LINE...: with this file more, the check fails.
  local check=$1 path=$2
  shift 2
  put "$path" "$@"
  refuses "$check" "$path"
}
lines() { local i; for ((i = 0; i < $1; i++)); do echo "//"; done; }

wrong arrows clientlib/base/bad.cc '#include "clientlib/model/json.h"'
wrong arrows clientlib/http/bad.cc '#include "clientlib/auth/token_source.h"'
wrong arrows clientlib/model/bad.h '#include "crds/types/job.h"'
wrong arrows clientlib/runtime/bad.cc '#include "clientlib/testing/fake.h"'
wrong arrows clientlib/cache/bad.cc '#include "tests/kit/server.h"'
wrong arrows crds/types/bad.cc '#include "clientlib/client/client.h"'
wrong arrows controllers/policy/bad.cc '#include "clientlib/cache/store.h"'
wrong arrows controllers/elastic/bad.cc '#include "controllers/gang/gang_plan.h"'
wrong arrows controllers/gang/bad.cc '#include "controllers/manager/options.h"'
wrong arrows controllers/elastic/near.cc '#include "near.h"'
wrong arrows controllers/unknown/bad.cc '#include "clientlib/base/error.h"'
wrong arrows bench/bad_bench.cc '#include "tests/integration/server.h"'
wrong arrows examples/story/main.cc '#include "controllers/policy/ledger.h"'
wrong fences clientlib/http/retry.cc '#include <curl/curl.h>'
wrong fences clientlib/auth/in_cluster.cc '#include <yaml-cpp/yaml.h>'
wrong fences crds/types/bad.cc '#include <rapidjson/reader.h>'
wrong fences clientlib/runtime/manager.cc '#include <boost/beast/http.hpp>'
wrong fences clientlib/runtime/wait.cc '  #  include <boost/asio.hpp>'
wrong fences controllers/manager/main.cc '#include <spdlog/spdlog.h>'
wrong fences controllers/elastic/bad.cc '#include <boost/program_options.hpp>'
wrong fences controllers/policy/new.cc '#include <absl/strings/str_cat.h>'
wrong fences clientlib/base/bad_test.cc '#include <gtest/gtest.h>'
wrong pure controllers/policy/bad.cc '#include <random>'
wrong pure controllers/policy/log.h '#include "clientlib/base/log.h"'
wrong pure controllers/gang/gang_plan.cc 'auto t = Clock::now();'
wrong sizes clientlib/base/long.h "$(lines 149)"
wrong sizes clientlib/base/long.cc "$(lines 399)"
wrong sizes tests/clientlib/base/long_test.cc "$(lines 599)"
put clientlib/base/long.h "$(lines 148)"
put clientlib/base/long.cc "$(lines 398)"
put tests/clientlib/base/long_test.cc "$(lines 598)"
accepts sizes
wrong paths docs/guide.md 'cd /'work/main
wrong paths clientlib/base/home.cc 'f("/'root/x'");'
wrong paths controllers/elastic/temp.cc 'f("/tmp/x");'
wrong todos controllers/elastic/later.cc '// TO''DO: later'
wrong todos scripts/later.sh '# FIX''ME'
wrong_rule() { # wrong_rule ID [CELL...]
  rules_doc "$@"
  refuses rules docs/runtime-rules.md
}
wrong_rule L4
wrong_rule A5 says ''
wrong_rule Q10 says 'clientlib/base/rules_test:'
wrong_rule F3 says 'clientlib/base/rules_test: F3HeldOnce'
wrong_rule F3 says 'clientlib/base/rules_test: F3Holds, F3HeldOnce'
wrong_rule F3 says 'clientlib/base/rules_test: F3Holds<br>clientlib/base/some_test: F3Holds'
wrong_rule L1 says 'clientlib/base/rules_test: L11Holds'
wrong_rule V1 says 'clientlib/base/rules_test: OfNone'
wrong_rule W4 says 'clientlib/base/rules_test: W2Holds' ' Not chosen: W2 does it '
rules_doc
accepts rules
put docs/page.md '[`clientlib/base/error.h`](../clientlib/base/error.h)' '' '```cpp' "// $spdx" '```'
accepts pages
wrong pages docs/page.md '[`clientlib/base/error.h`](../clientlib/base/error.h)' '' '```cpp' '// Another one.' '```'
put controllers/gang/gang_plan.cc
refuses tested controllers/gang
for path in clientlib/base/naked.h tests/naked_test.cc naked.sh naked.yaml cmake/Naked.cmake naked/CMakeLists.txt; do
  mkdir -p -- "$(dirname -- "$path")"
  echo naked >"$path"
  refuses spdx "$path"
done
printf '#!/bin/sh\n# no licence\n' >no-suffix
chmod +x no-suffix
refuses spdx no-suffix

echo "$passed passed, $failed failed"
((failed == 0))
