// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/kubeconfig_yaml.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>

namespace kube {
namespace {

constexpr int kMaxValues = 250'000;  // About 100 MB; thousands of clusters and users need far fewer.

// Throws on texts from which yaml-cpp 0.7 would make documents forever: it does not advance past a comma after a tag,
// and makes one empty document after another from it.
class Guard final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& at) override {
    if (at.pos == last_start_) throw YAML::ParserException(at, "unexpected text");
    last_start_ = at.pos;
    Count(at);
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& at, YAML::anchor_t) override { Count(at); }
  void OnAlias(const YAML::Mark& at, YAML::anchor_t) override { Count(at); }
  void OnScalar(const YAML::Mark& at, const std::string&, YAML::anchor_t, const std::string&) override { Count(at); }
  void OnSequenceStart(const YAML::Mark& at, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Count(at);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& at, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Count(at);
  }
  void OnMapEnd() override {}

 private:
  void Count(const YAML::Mark& at) {
    if (++values_ > kMaxValues) throw YAML::ParserException(at, "too many values");
  }

  int last_start_ = -1;
  int values_ = 0;
};

}  // namespace

Result<std::vector<YAML::Node>> LoadYaml(const std::string& text) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Guard guard;
    while (parser.HandleNextDocument(guard)) {
    }
    return YAML::LoadAll(text);
  } catch (const YAML::Exception& e) {
    // Instead of what(), report only the position and the parser's own message: neither contains text of the file.
    return Error(ErrorCode::kInvalidArgument,
                 "no valid YAML in line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  }
}

}  // namespace kube
