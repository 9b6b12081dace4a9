// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_tokens.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "clientlib/base/lower_case.h"
#include "clientlib/model/rapidjson_config.h"
#include "clientlib/model/utf8.h"

// RapidJSON then reads strings 16 bytes at a time: 16 readable bytes must follow the text. Not for the writer: version
// 1.1 then does not escape control characters from 0x1A to 0x1F (FindControl()).
#ifdef __SSE2__
#define RAPIDJSON_SSE2
#endif

// After its configuration.
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace kube {
namespace {

using Type = JsonToken::Type;

constexpr int kMaxDepth = kApiDepth + 2;     // The objects of a list lie two levels deep.
constexpr std::size_t kPadding = 32;         // Zeros after the text: its end, and room for reads of 16 bytes.
constexpr std::size_t kKeepBytes = 4 << 20;  // Larger buffers are freed after use.

// The power of ten of the first digit that is not 0. REQUIRES: `number` follows JSON's grammar and is not 0.
std::int64_t Magnitude(std::string_view number) {
  const std::size_t end = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), end);
  const std::size_t first = number.find_first_of("123456789");
  std::string_view digits = number.substr(std::min(end + 1, number.size()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  if (error == std::errc::result_out_of_range) exponent = digits.starts_with('-') ? -kHuge : kHuge;
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  return std::clamp(exponent, -kHuge, kHuge) + (first < point ? place - 1 : place);
}

// The position of the first control character from 0x1A to 0x1F, npos if there is none. JSON allows none, but RapidJSON
// 1.1 with SSE2 tests for "less than 0x20" with "at most 0x19" and accepts one among bytes that it reads 16 at a time.
// REQUIRES: 8 zero bytes behind the text.
std::size_t FindControl(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    const bool has_less_than_space = ((word - kOnes * ' ') & ~word & (kOnes * 0x80)) != 0;
    if (!has_less_than_space) continue;
    const char* const end = text.data() + at + 8;
    const char* const found = std::find_if(end - 8, end, [](char c) { return c >= 0x1A && c <= 0x1F; });
    if (found != end) return static_cast<std::size_t>(found - text.data());
  }
  return std::string_view::npos;
}

// Takes RapidJSON's events and appends tokens.
class Handler {
 public:
  Handler(std::vector<JsonToken>& tokens, std::size_t max_depth, std::size_t max_tokens, JsonTokens::Filter filter)
      : tokens_(tokens), max_depth_(max_depth), max_tokens_(max_tokens), filter_(filter) {}

  const std::string& problem() const { return problem_; }
  ErrorCode problem_code() const { return code_; }

  bool Null() { return AddScalar({}); }
  bool Bool(bool value) { return AddInt(Type::kBool, value); }
  bool Int(int value) { return AddInt(Type::kInt, value); }
  bool Uint(unsigned value) { return AddInt(Type::kInt, value); }
  bool Int64(std::int64_t value) { return AddInt(Type::kInt, value); }
  bool Uint64(std::uint64_t value) {
    if (value > std::numeric_limits<std::int64_t>::max()) return Double(static_cast<double>(value));
    return AddInt(Type::kInt, static_cast<std::int64_t>(value));
  }
  bool Double(double value) {
    JsonToken token;
    token.type = Type::kDouble;
    token.number = value;
    return AddScalar(token);
  }
  // All numbers: RapidJSON 1.1's own conversion reads beyond its table for one such as 0.0...01 of 400
  // digits.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const char* const end = text + size;
    std::int64_t integer = 0;
    if (const auto [at, error] = std::from_chars(text, end, integer); error == std::errc() && at == end) {
      return AddInt(Type::kInt, integer);
    }
    double number = 0;
    const auto [at, error] = std::from_chars(text, end, number);
    if (error == std::errc() && at == end) return Double(number);
    if (error == std::errc::result_out_of_range && Magnitude({text, size}) < 0) return Double(0);
    return Fail("number too big to be stored in double");
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    // RapidJSON does not check bytes, and turns an escaped lone surrogate into three bytes that are no character.
    if (!IsValidUtf8({text, size})) return Fail("string is not valid UTF-8");
    return AddScalar(StringToken(text, size));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (!IsValidUtf8({text, size})) return Fail("key is not valid UTF-8");
    tokens_.push_back(StringToken(text, size));
    if (filter_ == JsonTokens::Filter::kManagement) NoteKey({text, size});
    return true;
  }
  bool StartObject() { return Open(Type::kObject); }
  bool StartArray() { return Open(Type::kArray); }
  bool EndObject(rapidjson::SizeType count) { return Close(count); }
  bool EndArray(rapidjson::SizeType count) { return Close(count); }

 private:
  enum class Place : std::uint8_t { kOther, kMetadata, kAnnotations };
  struct Frame {
    std::size_t token;  // Where the array or object starts.
    Place place;        // What it is.
    bool is_dropped;    // It becomes null when it ends.
  };

  static JsonToken StringToken(const char* text, rapidjson::SizeType size) {
    JsonToken token;
    token.type = Type::kString;
    token.text = text;
    token.size = size;
    return token;
  }
  bool AddInt(Type type, std::int64_t value) {
    JsonToken token;
    token.type = type;
    token.integer = value;
    return AddScalar(token);
  }
  bool AddScalar(JsonToken token) {
    tokens_.push_back(std::exchange(drop_next_, false) ? JsonToken{} : token);
    return CheckCount();
  }

  bool Open(Type type) {
    if (open_.size() >= max_depth_) {
      return Fail("nested deeper than " + std::to_string(max_depth_), ErrorCode::kTooLarge);
    }
    open_.push_back({.token = tokens_.size(),
                     .place = std::exchange(next_place_, Place::kOther),
                     .is_dropped = std::exchange(drop_next_, false)});
    tokens_.emplace_back().type = type;
    return CheckCount();
  }
  bool Close(std::uint64_t count) {
    const Frame frame = open_.back();
    open_.pop_back();
    JsonToken& start = tokens_[frame.token];
    if (frame.is_dropped) {
      start = {};
      tokens_.resize(frame.token + 1);
    } else {
      start.count = count;
      start.size = static_cast<std::uint32_t>(tokens_.size() - frame.token);
    }
    return true;
  }

  void NoteKey(std::string_view key) {
    next_place_ = Place::kOther;
    const Place place = open_.back().place;
    if (key == "metadata") {
      next_place_ = Place::kMetadata;
    } else if (place == Place::kMetadata && key == "annotations") {
      next_place_ = Place::kAnnotations;
    } else if (place == Place::kMetadata) {
      drop_next_ = key == "managedFields";
    } else if (place == Place::kAnnotations) {
      drop_next_ = key == "kubectl.kubernetes.io/last-applied-configuration";
    }
  }

  bool CheckCount() {
    if (tokens_.size() <= max_tokens_) return true;
    return Fail("more than " + std::to_string(max_tokens_) + " values and keys", ErrorCode::kTooLarge);
  }

  bool Fail(std::string problem, ErrorCode code = ErrorCode::kDecode) {
    problem_ = std::move(problem);
    code_ = code;
    return false;
  }

  std::vector<JsonToken>& tokens_;
  const std::size_t max_depth_, max_tokens_;
  const JsonTokens::Filter filter_;
  std::vector<Frame> open_;  // The arrays and objects that have not ended yet.
  Place next_place_ = Place::kOther;
  bool drop_next_ = false;
  std::string problem_;  // Empty: none.
  ErrorCode code_ = ErrorCode::kDecode;
};

Error AtByte(ErrorCode code, std::size_t offset, std::string_view problem) {
  return Error(code, "JSON at byte " + std::to_string(offset) + ": " + std::string(problem));
}

// A message of the parser, as a part of a sentence.
std::string PartOfSentence(std::string_view message) {
  std::string text = LowerFirst(message);
  while (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Result<const JsonToken*> JsonTokens::Parse(std::string_view text, const JsonLimits& limits, Filter filter) {
  // A token counts its inner tokens in 32 bits, and there are at most as many as bytes.
  const std::size_t max_bytes = std::min<std::size_t>(limits.max_bytes, std::numeric_limits<std::uint32_t>::max());
  if (text.size() > max_bytes) {
    return Error(ErrorCode::kTooLarge,
                 "JSON of " + std::to_string(text.size()) + " bytes is over the limit of " + std::to_string(max_bytes));
  }
  if (text_.capacity() > kKeepBytes) text_ = {};
  if (tokens_.capacity() > kKeepBytes / sizeof(JsonToken)) tokens_ = {};
  tokens_.clear();
  text_.resize(text.size() + kPadding);
  std::copy(text.begin(), text.end(), text_.begin());
  std::fill(text_.end() - kPadding, text_.end(), '\0');

  if (const std::size_t at = FindControl({text_.data(), text.size()}); at != std::string_view::npos) {
    return AtByte(ErrorCode::kDecode, at, "control character");
  }

  using rapidjson::UTF8;
  rapidjson::GenericReader<UTF8<>, UTF8<>> reader;
  rapidjson::GenericInsituStringStream<UTF8<>> stream(text_.data());
  const auto max_depth = static_cast<std::size_t>(std::clamp(limits.max_depth, 1, kMaxDepth));
  Handler handler(tokens_, max_depth, limits.max_values, filter);
  constexpr unsigned kFlags = rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseStopWhenDoneFlag;
  const rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, handler);
  if (!handler.problem().empty()) return AtByte(handler.problem_code(), parsed.Offset(), handler.problem());
  if (parsed.IsError()) {
    return AtByte(ErrorCode::kDecode, parsed.Offset(), PartOfSentence(rapidjson::GetParseError_En(parsed.Code())));
  }
  rapidjson::SkipWhitespace(stream);
  // RapidJSON stops at any zero byte; only the one after the last byte is the end of the text.
  if (stream.Tell() != text.size()) return AtByte(ErrorCode::kDecode, stream.Tell(), "text after the end of the value");
  return tokens_.data();
}

JsonTokens& ThreadJsonTokens() {
  thread_local JsonTokens tokens;
  return tokens;
}

}  // namespace kube
