// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/table/function_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

namespace grus::cuda {
namespace {

struct ClassName {
  std::string_view in_table, in_code;
};
// In the order of FunctionClass.
constexpr std::array<ClassName, 6> kClassNames = {{{"count", "kCount"},
                                                   {"charge", "kCharge"},
                                                   {"report", "kReport"},
                                                   {"find", "kFind"},
                                                   {"reconcile", "kReconcile"},
                                                   {"pass", "kPass"}}};

std::optional<FunctionClass> ParseClass(std::string_view word) {
  for (std::size_t i = 0; i < kClassNames.size(); ++i) {
    if (kClassNames[i].in_table == word) return static_cast<FunctionClass>(i);
  }
  return std::nullopt;
}

// 3020 is 3.2. No function is older than 2.0.
std::optional<int> ParseVersion(std::string_view word) {
  int version = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), version);
  if (error != std::errc() || end != word.data() + word.size() || version < 2000 || version > 99990)
    return std::nullopt;
  return version % 10 == 0 ? std::optional(version) : std::nullopt;
}

bool IsSymbol(std::string_view word) {
  return word.starts_with("cu") && std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

bool HasPerThreadSuffix(std::string_view name) { return name.ends_with("_ptsz") || name.ends_with("_ptds"); }

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return fields;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  void Read(std::string_view line) {
    ++line_;
    if (line.starts_with('#')) return;
    const std::vector<std::string_view> fields = Split(line);
    if (fields.size() != 4) {
      return Complain("has " + std::to_string(fields.size()) + " fields; write EXPORTED ASKED SINCE CLASS");
    }
    DriverFunction function{std::string(fields[0]), std::string(fields[1])};
    for (const std::string& name : {function.exported, function.asked}) {
      if (!IsSymbol(name)) return Complain(Quoted(name) + " is no function of the driver; write its symbol, cu...");
    }
    if (HasPerThreadSuffix(function.asked)) {
      return Complain("nobody asks for " + Quoted(function.asked) + "; leave _ptsz and _ptds to the symbol");
    }
    const std::optional<int> since = ParseVersion(fields[2]);
    if (!since) return Complain(Quoted(fields[2]) + " is no CUDA version; write 3020 for 3.2, 11040 for 11.4");
    const std::optional<FunctionClass> function_class = ParseClass(fields[3]);
    if (!function_class) return Complain("class " + Quoted(fields[3]) + " is not known; use " + AllClasses());
    function.since = *since;
    function.function_class = *function_class;
    Add(std::move(function));
  }

  FunctionTable Finish() && {
    if (table_.functions.empty() && table_.errors.empty()) {
      table_.errors.push_back(file_ + ": has no function; restore it from the repository");
    }
    return std::move(table_);
  }

 private:
  void Add(DriverFunction function) {
    const auto [of_symbol, is_new] = line_of_symbol_.emplace(function.exported, line_);
    if (!is_new) Complain(function.exported + " is in line " + std::to_string(of_symbol->second) + " too; remove one");
    const auto [of_name, is_free] =
        line_of_name_.emplace(std::tuple(function.asked, function.since, function.IsPerThread()), line_);
    if (!is_free) {
      Complain(function.asked + " at " + std::to_string(function.since) + " is line " +
               std::to_string(of_name->second) + "'s already; correct ASKED or SINCE of one");
    }
    if (!table_.functions.empty() && Key(function) < Key(table_.functions.back())) {
      Complain(function.exported + " must come before " + table_.functions.back().exported +
               "; sort by ASKED, then SINCE, then EXPORTED");
    }
    table_.functions.push_back(std::move(function));
  }

  static std::tuple<const std::string&, int, const std::string&> Key(const DriverFunction& function) {
    return {function.asked, function.since, function.exported};
  }

  static std::string Quoted(std::string_view word) { return '"' + std::string(word) + '"'; }

  static std::string AllClasses() {
    std::string all;
    for (const ClassName& name : kClassNames) {
      if (!all.empty()) all += name.in_table == kClassNames.back().in_table ? " or " : ", ";
      all += name.in_table;
    }
    return all;
  }

  void Complain(const std::string& what) { table_.errors.push_back(file_ + ":" + std::to_string(line_) + ": " + what); }

  std::string file_;
  int line_ = 0;
  FunctionTable table_;
  std::map<std::string, int> line_of_symbol_;
  std::map<std::tuple<std::string, int, bool>, int> line_of_name_;
};

}  // namespace

bool DriverFunction::IsPerThread() const { return HasPerThreadSuffix(exported); }

bool DriverFunction::IsHooked() const {
  return function_class != FunctionClass::kPass && function_class != FunctionClass::kReconcile;
}

FunctionTable ReadFunctionTable(std::string_view text, std::string_view file) {
  Reader reader(file);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.Read(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(reader).Finish();
}

std::string WriteHooks(std::vector<DriverFunction> functions) {
  std::erase_if(functions, [](const DriverFunction& function) { return !function.IsHooked(); });
  std::sort(functions.begin(), functions.end(), [](const DriverFunction& a, const DriverFunction& b) {
    return std::tuple(std::string_view(a.asked), a.IsPerThread(), a.since) <
           std::tuple(std::string_view(b.asked), b.IsPerThread(), b.since);
  });
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Generated by cuda-function-table from nodeagent/cuda/table/driver_functions.txt; do not edit.\n";
  for (const DriverFunction& function : functions) {
    text.append("GRUS_HOOK(").append(function.exported).append(", \"").append(function.asked).append("\", ");
    text.append(std::to_string(function.since)).append(function.IsPerThread() ? ", true, " : ", false, ");
    text.append(kClassNames[static_cast<std::size_t>(function.function_class)].in_code).append(")\n");
  }
  return text;
}

}  // namespace grus::cuda
