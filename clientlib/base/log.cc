// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "clientlib/base/printable.h"

namespace kube {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::info;
}

std::string_view NameOf(LogLevel level, LogFormat format) {
  const bool is_json = format == LogFormat::kJson;
  switch (level) {
    case LogLevel::kDebug: return is_json ? "debug" : "DEBUG";
    case LogLevel::kInfo: return is_json ? "info" : "INFO";
    case LogLevel::kWarn: return is_json ? "warn" : "WARN";
    case LogLevel::kError: return is_json ? "error" : "ERROR";
    case LogLevel::kOff: break;
  }
  return "";
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  AppendPrintable(out, text, "\"\\");
  out += '"';
}

// Quotes a value that would not read as one word: an entry stays one line, and outside input cannot control a terminal.
void AppendTextValue(std::string& out, std::string_view value) {
  if (value.empty() || value.find_first_of(" \"=") != std::string_view::npos || !IsPrintable(value)) {
    AppendJsonString(out, value);
  } else {
    out += value;
  }
}

}  // namespace

struct Log::Sink {
  spdlog::logger logger{"grus", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Log::Log(LogLevel level, LogFormat format) : level_(level), format_(format), sink_(std::make_unique<Sink>()) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(
      format == LogFormat::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})" : "%Y-%m-%dT%H:%M:%S.%eZ %v",
      spdlog::pattern_time_type::utc);
  sink_->logger.set_formatter(std::move(formatter));
  sink_->logger.set_level(ToSpdlog(level));
}

Log::~Log() = default;

void Log::Write(LogLevel level, std::string_view message, Fields fields) const {
  if (!IsEnabled(level)) return;
  std::string line;
  if (format_ == LogFormat::kJson) {
    line.append("\"level\":\"").append(NameOf(level, format_)).append("\",\"message\":");
    AppendJsonString(line, message);
    for (const LogField& field : fields) {
      line += ',';
      AppendJsonString(line, field.name());
      line += ':';
      if (field.is_quoted()) {
        AppendJsonString(line, field.value());
      } else {
        line += field.value();
      }
    }
  } else {
    line.append(NameOf(level, format_)).append(" ");
    AppendPrintable(line, message);
    for (const LogField& field : fields) {
      line.append(" ").append(field.name()).append("=");
      AppendTextValue(line, field.value());
    }
  }
  sink_->logger.log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace kube
