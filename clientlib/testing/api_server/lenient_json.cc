// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/lenient_json.h"

#include <algorithm>

namespace kube::testing {
namespace {

// Only objects and arrays are read here; the rest is left to ParseJson().
class Reader {
 public:
  Reader(std::string_view text, std::vector<std::string>& duplicates) : text_(text), duplicates_(duplicates) {}

  Result<Json> Read() {
    Json json;
    if (!Value(json, {}, 0) || (SkipSpace(), at_ != text_.size())) {
      return Error(ErrorCode::kDecode, "no JSON at byte " + std::to_string(at_));
    }
    return json;
  }

 private:
  static constexpr int kMaxDepth = 100;

  void SkipSpace() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool Skip(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool Scalar(Json& out) {
    SkipSpace();
    const std::size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
      at_ = std::min(at_ + 1, text_.size());
    } else {
      at_ = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
    }
    Result<Json> scalar = ParseJson(text_.substr(start, at_ - start));
    if (scalar) out = *std::move(scalar);
    return scalar.ok();
  }

  bool Value(Json& out, const std::string& path, int depth) {
    if (depth > kMaxDepth) return false;
    if (Skip('{')) return Members(out, path, depth);
    if (!Skip('[')) return Scalar(out);
    out = Json::MakeArray();
    if (Skip(']')) return true;
    do {
      const std::string at = path + "[" + std::to_string(out.AsArray()->size()) + "]";
      Json item;
      if (!Value(item, at, depth + 1)) return false;
      out.Append(std::move(item));
    } while (Skip(','));
    return Skip(']');
  }

  bool Members(Json& out, const std::string& path, int depth) {
    out = Json::MakeObject();
    if (Skip('}')) return true;
    do {
      Json key, value;
      if (!Scalar(key) || !key.AsString() || !Skip(':')) return false;
      const std::string at = path.empty() ? *key.AsString() : path + "." + *key.AsString();
      if (out.Find(*key.AsString())) duplicates_.push_back(at);
      if (!Value(value, at, depth + 1)) return false;
      out[*key.AsString()] = std::move(value);
    } while (Skip(','));
    return Skip('}');
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string>& duplicates_;
};

}  // namespace

Result<Json> ParseLenientJson(std::string_view text, std::vector<std::string>& duplicates) {
  Result<Json> json = ParseJson(text);
  if (json || json.error().message().find("given twice") == std::string::npos) return json;
  return Reader(text, duplicates).Read();
}

}  // namespace kube::testing
