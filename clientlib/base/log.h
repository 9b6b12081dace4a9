// SPDX-License-Identifier: Apache-2.0
// Structured log lines: a constant message plus fields.
//
//   log.Info("workers resized", {{"job", key}, {"from", 8}, {"to", 5}, {"reason", "unschedulable"}});
//
// Text:  2026-01-02T03:04:05.678Z INFO workers resized job=team-a/bert from=8 to=5 reason=unschedulable
// JSON:  {"time":"...","level":"info","message":"workers resized","job":"team-a/bert","from":8,...}
// Thread-safe. Writes to standard error.
#pragma once

#include <cmath>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace kube {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat { kText, kJson };

class LogField {
 public:
  LogField(std::string_view name, std::string_view value) : name_(name), value_(value) {}
  LogField(std::string_view name, const char* value) : LogField(name, std::string_view(value)) {}
  LogField(std::string_view name, const std::string& value) : LogField(name, std::string_view(value)) {}
  template <typename T>
  requires std::integral<T> || std::floating_point<T> LogField(std::string_view name, T value)
      : name_(name), value_(std::to_string(value)), is_quoted_(false) {
    if constexpr (std::same_as<T, bool>) value_ = value ? "true" : "false";
    if constexpr (std::floating_point<T>) is_quoted_ = !std::isfinite(value);  // JSON has no infinity.
  }

  std::string_view name() const { return name_; }
  const std::string& value() const { return value_; }
  bool is_quoted() const { return is_quoted_; }  // In JSON: a string, not a number or boolean.

 private:
  std::string_view name_;
  std::string value_;
  bool is_quoted_ = true;
};

class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  explicit Log(LogLevel level = LogLevel::kInfo, LogFormat format = LogFormat::kText);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool IsEnabled(LogLevel level) const { return level >= level_; }
  void Debug(std::string_view message, Fields fields = {}) const { Write(LogLevel::kDebug, message, fields); }
  void Info(std::string_view message, Fields fields = {}) const { Write(LogLevel::kInfo, message, fields); }
  void Warn(std::string_view message, Fields fields = {}) const { Write(LogLevel::kWarn, message, fields); }
  void Error(std::string_view message, Fields fields = {}) const { Write(LogLevel::kError, message, fields); }

 private:
  void Write(LogLevel level, std::string_view message, Fields fields) const;

  struct Sink;
  LogLevel level_;
  LogFormat format_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace kube
