// SPDX-License-Identifier: Apache-2.0
// The fixture of the contract tests: the server they ask, a namespace for each test, and raw requests and
// streams.
//
// GRUS_CONTRACT_SERVER says which server: "real" (the cluster of $KUBECONFIG) or "fake"
// (kube::testing::FakeApiServer). The tests do not know. Nothing here depends on controllers: a real cluster
// has them, the fake has none. What a test cannot go on without throws, and GoogleTest reports it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/client/client.h"
#include "clientlib/http/json_lines.h"
#include "clientlib/http/transport.h"
#include "clientlib/model/json.h"

namespace kube {

// For GoogleTest, which shows bytes otherwise.
inline void PrintTo(const Json& value, std::ostream* out) { *out << ToText(value); }

}  // namespace kube

namespace kube::contract {

inline constexpr std::chrono::seconds kLimit{60};  // Far longer than any answer takes.

// The value at a path of member names and array positions ("details.causes.0.field"), strings as they are and
// all else as JSON; "(none)" if it is missing. A member whose name has a dot: use Json::At().
std::string TextAt(const Json& value, std::string_view path);

// The JSON of a literal; throws if it is none.
Json J(std::string_view text);

struct Answer {
  int status = 0;
  Json body;  // Null unless it is JSON.
  HttpResponse http;

  std::string operator[](std::string_view path) const { return TextAt(body, path); }
  std::vector<std::string> Names() const;     // Of the items of a list.
  std::vector<std::string> Warnings() const;  // The texts of the Warning headers.
};

// True for a Status object of that HTTP status, reason ("(none)": it has none) and message.
::testing::AssertionResult Refused(const Answer& answer, int code, std::string_view reason, std::string_view message);

struct Event {
  std::string type;  // As on the wire; kEnd when the stream ended regularly, kNothing when the limit passed.
  Json object;

  static constexpr std::string_view kEnd = "(end)", kNothing = "(nothing)";
  std::string operator[](std::string_view path) const { return TextAt(object, path); }
  std::string Summary() const;  // "ADDED name"
};

class Stream {
 public:
  Stream(StreamResponse response, const Clock& clock);

  const Answer& refusal() const { return refusal_; }  // If the server did not open it.
  int status() const { return refusal_.status; }
  Event Next(Duration limit = kLimit);

 private:
  Answer refusal_;
  std::unique_ptr<ByteStream> bytes_;
  const Clock& clock_;
  JsonLines lines_;
};

class Contract : public ::testing::Test {
 protected:
  void SetUp() override;     // Connects and creates the CRDs, once; creates the namespace.
  void TearDown() override;  // Deletes the namespace, without waiting.

  Transport& transport();
  Client& client();
  const Clock& clock();
  const std::string& ns() const { return ns_; }
  // A namespace beside ns(), deleted at the end as well. Its name.
  std::string MakeNamespace();

  // Collections in the test's namespace.
  std::string ConfigMaps() const { return Collection("/api/v1", "configmaps"); }
  std::string Secrets() const { return Collection("/api/v1", "secrets"); }
  std::string Pods() const { return Collection("/api/v1", "pods"); }
  std::string Widgets() const { return Collection("/apis/contract.grus.dev/v1", "widgets"); }
  std::string Collection(std::string_view group_version, std::string_view plural) const;

  Answer Send(const std::string& method, const std::string& target, const std::string& body = {},
              const std::string& content_type = "application/json");
  Answer Get(const std::string& target) { return Send("GET", target); }
  Answer Post(const std::string& target, const std::string& body) { return Send("POST", target, body); }
  Answer Put(const std::string& target, const Json& body) { return Send("PUT", target, ToText(body)); }
  Answer Delete(const std::string& target, const std::string& options = {}) { return Send("DELETE", target, options); }
  Answer Merge(const std::string& target, const std::string& patch);
  Answer JsonPatch(const std::string& target, const std::string& patch);
  Answer Strategic(const std::string& target, const std::string& patch);
  Stream Watch(const std::string& target);  // `target` with its query but watch=true.

  // Creates one and returns the answer; throws unless it is 201. `spec` is JSON, `metadata` more members of
  // it.
  Answer MakeWidget(const std::string& name, const std::string& spec = R"({"size":1})",
                    const std::string& metadata = "{}");
  Answer MakeConfigMap(const std::string& name, const std::string& data = "{}", const std::string& metadata = "{}");
  // The text of one.
  static std::string Widget(const std::string& name, const std::string& spec = R"({"size":1})",
                            const std::string& metadata = "{}");
  static std::string ConfigMap(const std::string& name, const std::string& data = "{}",
                               const std::string& metadata = "{}");
  // Without one, which a real cluster's controllers make, no pod can be made in the test's namespace.
  void AwaitServiceAccount();
  // The name of a node that serves logs, and takes no pods but those that name it.
  std::string NodeWithLogs();
  // What container "c" of a pod in the test's namespace writes: a line, or a part of one without a line's end. On the
  // real side it is read a moment later.
  void LogLine(const std::string& pod, const std::string& time, const std::string& text);
  std::string Version(const std::string& collection);  // metadata.resourceVersion of a list, now.

 private:
  std::string ns_;
  std::vector<std::string> more_namespaces_;
};

}  // namespace kube::contract
