// SPDX-License-Identifier: Apache-2.0
#include "controllers/prometheus/query_answer.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "clientlib/model/rapidjson_config.h"
// The configuration comes first.
// clang-format off
#include <rapidjson/reader.h>
// clang-format on

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr std::size_t kMostLevels = 20, kLongestError = 300;

double NumberOf(std::string_view text) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? value : kNone;
}

// The body as RapidJSON's reader takes it, character by character.
class BodyStream {
 public:
  using Ch = char;

  BodyStream(const ByteSource& source, std::size_t limit) : source_(source), left_(limit) { Fill(); }

  char Peek() const { return at_ < bytes_.size() ? bytes_[at_] : '\0'; }
  char Take() {
    const char taken = Peek();
    if (at_ < bytes_.size() && ++at_ == bytes_.size()) Fill();
    return taken;
  }
  std::size_t Tell() const { return 0; }  // Nobody is told where it is wrong.

  // What the reader needs to compile: it writes into the texts that it owns only.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  std::size_t PutEnd(char*) { return 0; }

  const std::optional<Error>& error() const { return error_; }

 private:
  void Fill() {
    at_ = 0;
    bytes_.clear();
    if (error_) return;
    auto more = source_();
    if (!more) {
      error_ = std::move(more).error();
      return;
    }
    if (more->size() > left_) {
      error_ = Error(ErrorCode::kTooLarge, "the answer is too long; let the query return fewer series");
      return;
    }
    left_ -= more->size();
    bytes_ = *std::move(more);
  }

  const ByteSource& source_;
  std::size_t left_, at_ = 0;
  std::string bytes_;
  std::optional<Error> error_;
};

// {"status": _, "error": _, "data": {"resultType": _, "result": [{"metric": {LABEL: _}, "value": [TIME, _]}]}}, its
// members in any order and with others among them; of a range, "metric" comes before "values": [[TIME, _]].
class AnswerHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, AnswerHandler> {
 public:
  AnswerHandler(std::size_t most_series, const OnSample& on_sample, AnswerKind kind)
      : most_(most_series), on_sample_(on_sample), kind_(kind) {}

  bool StartObject() {
    switch (in()) {
      case Part::kNothing: return Enter(Part::kAnswer);
      case Part::kAnswer: return Enter(key_ == "data" ? Part::kData : Part::kOther);
      case Part::kResult: return BeginSample() && Enter(Part::kSeries);
      case Part::kSeries: return Enter(key_ == "metric" ? Part::kLabels : Part::kOther);
      default: return Enter(Part::kOther);
    }
  }
  bool StartArray() {
    if (in() == Part::kData && key_ == "result") {
      has_result_ = true;
      sample_ = {};
      return Enter(Part::kResult);
    }
    if (in() == Part::kMoments) {
      sample_.value = std::numeric_limits<double>::quiet_NaN();
      return Enter(Part::kMoment);
    }
    if (in() != Part::kSeries) return Enter(Part::kOther);
    if (key_ == "values" && kind_ == AnswerKind::kRange) return Enter(Part::kMoments);
    return Enter(key_ == "value" && kind_ == AnswerKind::kNow ? Part::kValue : Part::kOther);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_.assign(text, size);
    return true;
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view value(text, size);
    switch (in()) {
      case Part::kAnswer:
        if (key_ == "status") status_ = value.substr(0, kLongestError);
        if (key_ == "error") error_ = value.substr(0, kLongestError);
        break;
      case Part::kData:
        if (key_ == "resultType") type_ = value.substr(0, kLongestError);
        break;
      case Part::kLabels: sample_.labels.emplace_back(key_, value); break;
      case Part::kValue:
      case Part::kMoment:
        if (has_time_) sample_.value = NumberOf(value);
        break;
      case Part::kResult:  // Of a scalar.
        if (has_time_) on_sample_({.labels = {}, .time = sample_.time, .value = NumberOf(value)});
        break;
      default: break;
    }
    return true;
  }
  bool Int(int number) { return Double(number); }
  bool Uint(unsigned number) { return Double(number); }
  bool Int64(std::int64_t number) { return Double(static_cast<double>(number)); }
  bool Uint64(std::uint64_t number) { return Double(static_cast<double>(number)); }
  bool Double(double number) {
    if (in() != Part::kValue && in() != Part::kMoment && in() != Part::kResult) return true;
    has_time_ = true;
    sample_.time = number;
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (in() == Part::kSeries && kind_ == AnswerKind::kNow) on_sample_(sample_);
    levels_.pop_back();
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    if (in() == Part::kMoment) on_sample_(sample_);
    levels_.pop_back();
    return true;
  }

  bool has_too_many() const { return series_ > most_; }

  kube::Status Verdict() const {
    if (status_.empty()) return Error(ErrorCode::kDecode, "the answer is not from Prometheus: it has no status");
    if (status_ != "success") {
      return Error(ErrorCode::kInvalidArgument, "Prometheus says: " + (error_.empty() ? "no reason is given" : error_));
    }
    if (!has_result_ || type_.empty()) {
      return Error(ErrorCode::kDecode, "the answer is not from Prometheus: it has no result");
    }
    const bool is_range = kind_ == AnswerKind::kRange;
    if (is_range ? type_ != "matrix" : type_ != "vector" && type_ != "scalar") {
      return Error(ErrorCode::kInvalidArgument, "the query returns a " + type_.substr(0, 20) + ", not numbers of " +
                                                    (is_range ? "several times" : "now"));
    }
    return {};
  }

 private:
  enum class Part { kNothing, kAnswer, kData, kResult, kSeries, kLabels, kValue, kMoments, kMoment, kOther };

  Part in() const { return levels_.empty() ? Part::kNothing : levels_.back(); }
  bool Enter(Part part) {
    if (levels_.size() == kMostLevels) return false;
    has_time_ = false;
    levels_.push_back(part);
    return true;
  }
  bool BeginSample() {
    sample_.labels.clear();
    sample_.time = 0;
    sample_.value = std::numeric_limits<double>::quiet_NaN();
    return ++series_ <= most_;
  }

  const std::size_t most_;
  const OnSample& on_sample_;
  const AnswerKind kind_;
  std::vector<Part> levels_;
  std::string key_, status_, error_, type_;
  bool has_result_ = false;
  bool has_time_ = false;  // Of the pair that is being read.
  std::size_t series_ = 0;
  QuerySample sample_;
};

}  // namespace

kube::Status ReadAnswer(const ByteSource& source, AnswerLimits limits, const OnSample& on_sample, AnswerKind kind) {
  BodyStream body(source, limits.bytes);
  AnswerHandler handler(limits.series, on_sample, kind);
  rapidjson::Reader reader;
  const bool is_read = !reader.Parse<rapidjson::kParseValidateEncodingFlag>(body, handler).IsError();
  if (body.error()) return *body.error();
  if (handler.has_too_many()) {
    return Error(ErrorCode::kTooLarge, "the query returns more than " + std::to_string(limits.series) + " series");
  }
  if (!is_read) return Error(ErrorCode::kDecode, "the answer is not from Prometheus: it is no JSON");
  return handler.Verdict();
}

}  // namespace grus
