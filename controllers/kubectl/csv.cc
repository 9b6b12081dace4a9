// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr std::size_t kMaxQuoted = 40;  // Of a field, in a message.

Error At(const std::string& name, int line, const std::string& what) {
  return Error(ErrorCode::kDecode, name + ":" + std::to_string(line) + ": " + what);
}

std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Reads character by character; rows end at line breaks outside quotes.
class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  kube::Result<std::vector<CsvRow>> Parse() {
    for (at_ = 0; at_ < text_.size(); ++at_) {
      if (auto error = Take(text_[at_])) return std::move(*error);
    }
    if (is_quoted_) return At(name_, row_.line, "a quote is not closed; add the closing one");
    EndRow();
    return std::move(rows_);
  }

 private:
  std::optional<Error> Take(char c) {
    if (row_.line == 0) row_.line = line_;
    if (c == '\n') ++line_;
    if (is_quoted_) {
      TakeQuoted(c);
    } else if (c == '"') {
      if (was_quoted_ || !Trimmed(field_).empty()) {
        return At(name_, line_, "a quote in the middle of a field; put the whole field in quotes");
      }
      field_.clear();
      is_quoted_ = was_quoted_ = true;
    } else if (c == ',') {
      EndField();
    } else if (c == '\n') {
      EndRow();
    } else if (c != '\r') {
      field_ += c;
    }
    return std::nullopt;
  }

  void TakeQuoted(char c) {
    if (c != '"') {
      field_ += c;
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field_ += c;
      ++at_;
    } else {
      is_quoted_ = false;
    }
  }

  void EndField() {
    row_.fields.push_back(was_quoted_ ? field_ : Trimmed(field_));
    field_.clear();
    was_quoted_ = false;
  }

  void EndRow() {
    const bool is_blank = row_.fields.empty() && !was_quoted_ && Trimmed(field_).empty();
    if (!is_blank) {
      EndField();
      rows_.push_back(std::move(row_));
    }
    row_ = {};
    field_.clear();
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool is_quoted_ = false;   // Inside quotes.
  bool was_quoted_ = false;  // The field began with one.
  std::string field_;
  CsvRow row_;
  std::vector<CsvRow> rows_;
};

}  // namespace

kube::Result<CsvTable> ParseCsv(std::string_view text, const std::string& name) {
  if (text.size() > kMaxCsvBytes) {
    return Error(ErrorCode::kTooLarge, name + ": larger than " + std::to_string(kMaxCsvBytes >> 20) + " MiB; split it");
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
    return At(name, static_cast<int>(line), "is no text, or UTF-16; save the file as UTF-8");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  kube::Result<std::vector<CsvRow>> rows = Parser(text, name).Parse();
  if (!rows) return std::move(rows).error();
  if (rows->empty()) return At(name, 1, "no header; the first line must name the columns");
  CsvTable table{name, std::move(rows->front()), {}};
  table.rows.assign(std::make_move_iterator(rows->begin() + 1), std::make_move_iterator(rows->end()));
  for (const CsvRow& row : table.rows) {
    if (row.fields.size() == table.header.fields.size()) continue;
    return At(name, row.line,
              std::to_string(row.fields.size()) + " fields, but the header has " +
                  std::to_string(table.header.fields.size()) + "; put fields with commas in quotes");
  }
  return table;
}

kube::Result<std::size_t> FindColumn(const CsvTable& table, std::string_view column, std::string_view wanted) {
  const auto& columns = table.header.fields;
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    return At(table.name, table.header.line,
              "no column " + std::string(column) + "; the header must name " + std::string(wanted));
  }
  if (std::find(found + 1, columns.end(), column) != columns.end()) {
    return At(table.name, table.header.line, "two columns " + std::string(column) + "; rename or remove one");
  }
  return static_cast<std::size_t>(found - columns.begin());
}

Error BadField(const CsvTable& table, const CsvRow& row, std::size_t column, std::string_view what) {
  std::string value = row.fields[column].substr(0, kMaxQuoted);
  for (char& c : value) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';  // The message stays one line.
  }
  return At(table.name, row.line, "column " + table.header.fields[column] + ": \"" + value + "\" " + std::string(what));
}

bool ParseNumber(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace grus
