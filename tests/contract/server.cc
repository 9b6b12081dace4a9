// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/server.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "clientlib/client/connection.h"
#include "clientlib/http/url.h"
#include "clientlib/model/crd.h"
#include "clientlib/model/time.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "crds/types/all_crds.h"
#include "tests/kit/local_cluster.h"
#include "tests/kit/must.h"
#include "tests/kit/tree_file.h"

namespace kube::contract {
namespace {

constexpr std::string_view kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr std::string_view kMissing = "(none)";

using kit::Must;

Answer AnswerOf(HttpResponse response) {
  Answer answer{.status = response.status, .body = {}, .http = std::move(response)};
  if (Result<Json> body = ParseJson(answer.http.body)) answer.body = *std::move(body);
  return answer;
}

std::string AddQuery(const std::string& target, std::string_view query) {
  return target + (target.find('?') == std::string::npos ? "?" : "&") + std::string(query);
}

// The one server of this process.
class Server {
 public:
  static Server& Instance() {
    static Server server;
    return server;
  }

  const SystemClock clock;
  Transport* transport = nullptr;
  Client* client = nullptr;
  testing::FakeApiServer* fake() { return fake_.get(); }  // Null: it is the real one.

  // Unlike any name before, also those of runs before on the same cluster.
  std::string NewNamespaceName() { return "contract-" + first_ + "-" + std::to_string(++namespaces_); }

 private:
  Server() : first_(std::to_string(clock.WallNow().time_since_epoch() / std::chrono::milliseconds(1))) {
    const char* variable = std::getenv("GRUS_CONTRACT_SERVER");
    const std::string_view which = variable != nullptr ? variable : "";
    if (which == "real") {
      connection_ = Must(Connect({.user_agent = "contract-test"}, clock));
      transport = connection_->transport.get();
      client = connection_->client.get();
    } else if (which == "fake") {
      fake_ = std::make_unique<testing::FakeApiServer>(clock);
      fake_client_ = std::make_unique<Client>(*fake_, nullptr, clock, ClientOptions{.user_agent = "contract-test"});
      transport = fake_.get();
      client = fake_client_.get();
    } else {
      throw std::runtime_error("GRUS_CONTRACT_SERVER is neither \"real\" nor \"fake\"");
    }
    std::vector<Json> crds = {J(kit::ReadTreeFile("tests/contract/widget_crd.json"))};
    for (const CrdInfo& info : api::AllCrds()) crds.push_back(kube::MakeCrd(info));
    for (const Json& crd : crds) MakeCrd(crd);
    for (const Json& crd : crds) AwaitDiscovery(crd);
  }

  // A CRD is Established a moment before the server names it to its clients.
  void AwaitDiscovery(const Json& crd) {
    const std::string version = TextAt(crd, "spec.group") + "/" + TextAt(crd, "spec.versions.0.name");
    const auto names = [&](const std::string& path, const std::string& member, const std::string& value) {
      const HttpResponse answer = Must(transport->Send({.target = path}, {}));
      return answer.body.find("\"" + member + "\":\"" + value + "\"") != std::string::npos;
    };
    const TimePoint until = clock.Now() + kLimit;
    while (!names("/apis", "groupVersion", version) ||
           !names("/apis/" + version, "name", TextAt(crd, "spec.names.plural"))) {
      if (clock.Now() > until) throw std::runtime_error("the server does not name " + version);
    }
  }

  void MakeCrd(const Json& crd) {
    const std::string name = TextAt(crd, "metadata.name");
    const HttpResponse made = Must(transport->Send({.method = "POST",
                                                    .target = std::string(kCrds),
                                                    .headers = {{"Content-Type", "application/json"}},
                                                    .body = ToText(crd)},
                                                   {}));
    if (made.status != 201 && made.status != 409) throw std::runtime_error("create CRD: " + made.body);
    const std::string target =
        std::string(kCrds) + "?watch=true&fieldSelector=" + EscapeQueryValue("metadata.name=" + name);
    Stream stream(Must(transport->Open({.target = target, .pool = HttpPool::kWatch}, {})), clock);
    while (true) {
      const Event event = stream.Next();
      if (event.type != "ADDED" && event.type != "MODIFIED") {
        throw std::runtime_error("the CRD " + name + " does not become Established: " + event.type);
      }
      const Json* conditions = event.object.At({"status", "conditions"});
      if (conditions == nullptr || conditions->AsArray() == nullptr) continue;
      for (const Json& condition : *conditions->AsArray()) {
        if (TextAt(condition, "type") == "Established" && TextAt(condition, "status") == "True") return;
      }
    }
  }

  const std::string first_;
  int namespaces_ = 0;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<testing::FakeApiServer> fake_;
  std::unique_ptr<Client> fake_client_;
};

std::string ObjectText(std::string_view api_version, std::string_view kind, const std::string& name,
                       const std::string& metadata, std::string_view member, const std::string& value) {
  Json object = Json::MakeObject({{"apiVersion", api_version}, {"kind", kind}, {"metadata", J(metadata)}});
  object["metadata"]["name"] = name;
  object[member] = J(value);
  return ToText(object);
}

Answer MustBeCreated(Answer answer) {
  if (answer.status != 201) throw std::runtime_error("create: " + answer.http.body);
  return answer;
}

}  // namespace

std::string TextAt(const Json& value, std::string_view path) {
  const Json* at = &value;
  while (!path.empty()) {
    const std::string_view step = path.substr(0, path.find('.'));
    path.remove_prefix(step.size() == path.size() ? step.size() : step.size() + 1);
    if (const Json::Array* array = at->AsArray()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
      at = error == std::errc() && index < array->size() ? &(*array)[index] : nullptr;
    } else {
      at = at->Find(step);
    }
    if (at == nullptr) return std::string(kMissing);
  }
  return at->AsString() != nullptr ? *at->AsString() : ToText(*at);
}

Json J(std::string_view text) { return kit::FromText(text); }

std::vector<std::string> Answer::Names() const {
  std::vector<std::string> names;
  const Json* items = body.Find("items");
  if (items == nullptr || items->AsArray() == nullptr) return {"(no items)"};
  for (const Json& item : *items->AsArray()) names.push_back(TextAt(item, "metadata.name"));
  return names;
}

std::vector<std::string> Answer::Warnings() const {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : http.headers) {
    if (name == "warning") warnings.push_back(value);
  }
  return warnings;
}

::testing::AssertionResult Refused(const Answer& answer, int code, std::string_view reason, std::string_view message) {
  if (answer.status == code && answer["kind"] == "Status" && answer["apiVersion"] == "v1" &&
      answer["status"] == "Failure" && answer["code"] == std::to_string(code) && answer["reason"] == reason &&
      answer["message"] == message) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "wanted " << code << " " << reason << ": " << message << "\nbut got "
                                       << answer.status << " " << answer.http.body.substr(0, 1000);
}

std::string Event::Summary() const { return type + " " + TextAt(object, "metadata.name"); }

Stream::Stream(StreamResponse response, const Clock& clock)
    : refusal_(AnswerOf(std::move(response.head))), bytes_(std::move(response.stream)), clock_(clock) {}

Event Stream::Next(Duration limit) {
  if (bytes_ == nullptr) throw std::runtime_error("the watch was refused: " + refusal_.http.body);
  const TimePoint until = clock_.Now() + limit;
  while (true) {
    if (std::optional<std::string_view> line = lines_.Next()) {
      Json event = J(*line);
      return {TextAt(event, "type"), event["object"]};
    }
    Result<std::string> bytes = bytes_->Read(until, {});
    if (!bytes && bytes.error().code() == ErrorCode::kTimeout) return {std::string(Event::kNothing), {}};
    const std::string chunk = Must(std::move(bytes));
    if (chunk.empty()) return {std::string(Event::kEnd), {}};
    if (!lines_.Append(chunk)) throw std::runtime_error("a line of the watch is too long");
  }
}

void Contract::SetUp() { ns_ = MakeNamespace(); }

void Contract::TearDown() {
  for (const std::string& name : more_namespaces_) Delete("/api/v1/namespaces/" + name);
}

Transport& Contract::transport() { return *Server::Instance().transport; }
Client& Contract::client() { return *Server::Instance().client; }
const Clock& Contract::clock() { return Server::Instance().clock; }

std::string Contract::MakeNamespace() {
  const std::string name = Server::Instance().NewNamespaceName();
  MustBeCreated(
      Post("/api/v1/namespaces", ToText(Json::MakeObject({{"metadata", Json::MakeObject({{"name", name}})}}))));
  more_namespaces_.push_back(name);
  return name;
}

std::string Contract::Collection(std::string_view group_version, std::string_view plural) const {
  return std::string(group_version) + "/namespaces/" + ns_ + "/" + std::string(plural);
}

Answer Contract::Send(const std::string& method, const std::string& target, const std::string& body,
                      const std::string& content_type) {
  HttpRequest request{.method = method, .target = target, .body = body};
  if (!body.empty()) request.headers.emplace_back("Content-Type", content_type);
  return AnswerOf(Must(transport().Send(request, {})));
}

Answer Contract::Merge(const std::string& target, const std::string& patch) {
  return Send("PATCH", target, patch, "application/merge-patch+json");
}

Answer Contract::JsonPatch(const std::string& target, const std::string& patch) {
  return Send("PATCH", target, patch, "application/json-patch+json");
}

Answer Contract::Strategic(const std::string& target, const std::string& patch) {
  return Send("PATCH", target, patch, "application/strategic-merge-patch+json");
}

Stream Contract::Watch(const std::string& target) {
  return {Must(transport().Open({.target = AddQuery(target, "watch=true"), .pool = HttpPool::kWatch}, {})), clock()};
}

Answer Contract::MakeWidget(const std::string& name, const std::string& spec, const std::string& metadata) {
  return MustBeCreated(Post(Widgets(), Widget(name, spec, metadata)));
}

Answer Contract::MakeConfigMap(const std::string& name, const std::string& data, const std::string& metadata) {
  return MustBeCreated(Post(ConfigMaps(), ConfigMap(name, data, metadata)));
}

std::string Contract::Widget(const std::string& name, const std::string& spec, const std::string& metadata) {
  return ObjectText("contract.grus.dev/v1", "Widget", name, metadata, "spec", spec);
}

std::string Contract::ConfigMap(const std::string& name, const std::string& data, const std::string& metadata) {
  return ObjectText("v1", "ConfigMap", name, metadata, "data", data);
}

void Contract::AwaitServiceAccount() {
  if (Server::Instance().fake() != nullptr) return;
  Stream stream = Watch(Collection("/api/v1", "serviceaccounts") + "?fieldSelector=metadata.name%3Ddefault");
  const Event made = stream.Next();
  if (made.type != "ADDED") throw std::runtime_error("there is no service account in " + ns_ + ": " + made.type);
}

std::string Contract::NodeWithLogs() {
  const std::string name = "contract-with-logs", path = "/api/v1/nodes/" + name;
  if (Server::Instance().fake() != nullptr) return name;
  Post("/api/v1/nodes", R"({"metadata":{"name":")" + name + R"(","annotations":{"kwok.x-k8s.io/node":"fake"}},
                            "spec":{"unschedulable":true}})");
  const TimePoint until = clock().Now() + kLimit;
  for (std::string port = "0"; port == "0" || port == kMissing;) {
    if (clock().Now() > until) throw std::runtime_error("kwok does not play the node " + name);
    port = Get(path)["status.daemonEndpoints.kubeletEndpoint.Port"];
  }
  return name;
}

void Contract::LogLine(const std::string& pod, const std::string& time, const std::string& text) {
  if (testing::FakeApiServer* const fake = Server::Instance().fake()) {
    return fake->AppendPodLog({ns_, pod}, "c", Must(ParseTime(time)).value, text);
  }
  const bool is_whole = text.ends_with('\n');
  std::ofstream(kit::PodLogFile(ns_, pod), std::ios::app)
      << time + (is_whole ? " stdout F " : " stdout P ") + text + (is_whole ? "" : "\n");
}

std::string Contract::Version(const std::string& collection) {
  return Get(collection + "?limit=1")["metadata.resourceVersion"];
}

}  // namespace kube::contract
