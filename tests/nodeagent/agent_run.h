// SPDX-License-Identifier: Apache-2.0
// One life of grus-node-agent beside a test or a bench: with the fake driver, a made-up /proc and an API server in this
// process.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "clientlib/http/curl_transport.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/api_server/fake_api_socket.h"
#include "tests/kit/child_process.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/fake_driver.h"
#include "tests/nodeagent/fake_proc.h"

namespace grus::testing {

class AgentRun {
 public:
  // Pods and processes are added before Start().
  kube::testing::FakeApiServer& server() { return server_; }
  FakeProc& proc() { return proc_; }
  // What the driver says from now on (fake_nvml.cc).
  void Play(const std::string& script) {
    folder_.Write("next", script);
    std::filesystem::rename(folder_.path("next"), folder_.path("nvml"));
  }
  // A pod of this node whose container "main" has that id. Returns its UID.
  std::string AddPod(const std::string& name, const std::string& container) {
    kube::Json pod = *kube::ParseJson(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default"},"spec":{"nodeName":"node-1","containers":[
            {"name":"main","image":"a"}]}})");
    pod["metadata"]["name"] = name;
    const auto made = server_.Create("pods", std::move(pod));
    if (!made) throw std::runtime_error(made.error().message());
    kube::Json running = **made;
    running["status"] = *kube::ParseJson(
        R"({"phase":"Running","containerStatuses":[{"name":"main","image":"a","imageID":"a","ready":true,
            "restartCount":0,"containerID":"containerd://)" +
        container + R"("}]})");
    if (const auto done = server_.Update("pods", std::move(running), "status"); !done) {
      throw std::runtime_error(done.error().message());
    }
    return std::string(*(*made)->At({"metadata", "uid"})->AsString());
  }

  // `libraries`: where the driver's library is looked for first. False: it did not start; output() says why.
  bool Start(std::vector<std::string> arguments = {},
             const std::string& libraries = std::filesystem::path(FakeNvmlPath()).parent_path()) {
    socket_ = *kube::testing::FakeApiSocket::Open(server_);
    const std::string kubeconfig = folder_.Write(
        "kubeconfig",
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: "
        "u}}]\nusers: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: \"" +
            socket_->url() + "\"}}]\n");
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "grus-node-agent";
    std::vector<std::string> words = {program, "--node-name=node-1", "--metrics-bind-address=127.0.0.1:0",
                                      "--proc=" + proc_.path(), "--kubeconfig=" + kubeconfig};
    words.insert(words.end(), arguments.begin(), arguments.end());
    process_ = std::make_unique<kit::ChildProcess>(
        words, kit::ChildProcess::Variables{{"LD_LIBRARY_PATH", libraries}, {"GRUS_FAKE_NVML", folder_.path("nvml")}});
    if (!process_->AwaitOutput("metrics_port=")) return false;
    kube::TransportOptions options;
    options.server = "http://127.0.0.1:" + std::to_string(process_->NumberAfter("metrics_port="));
    transport_ = *kube::CurlTransport::Create(options, clock_);
    return true;
  }

  // The answer to a GET; empty: none.
  std::string Get(const std::string& path) {
    kube::HttpRequest request;
    request.target = path;
    auto response = transport_->Send(request, {});
    return response && response->status == 200 ? response->body : std::string();
  }
  // Scrapes until /metrics holds `text`; false if it does not come in time.
  bool AwaitMetric(const std::string& text) {
    const kube::TimePoint until = clock_.Now() + std::chrono::seconds(30);
    while (clock_.Now() < until) {
      if (Get("/metrics").find(text) != std::string::npos) return true;
    }
    return false;
  }
  // The node as it is once it holds `text`; empty if that does not come in time.
  std::string AwaitNode(const std::string& text) {
    const kube::TimePoint until = clock_.Now() + std::chrono::seconds(30);
    while (clock_.Now() < until && !Get("/healthz").empty()) {
      const std::string node = kube::ToText(*server_.Get("nodes", {"", "node-1"}));
      if (node.find(text) != std::string::npos) return node;
    }
    return "";
  }
  kit::ChildProcess& process() { return *process_; }

 private:
  const kube::SystemClock clock_;
  kube::testing::TempDir folder_;
  FakeProc proc_;
  kube::testing::FakeApiServer server_{clock_};
  std::unique_ptr<kube::testing::FakeApiSocket> socket_;
  std::unique_ptr<kit::ChildProcess> process_;
  std::unique_ptr<kube::Transport> transport_;
};

}  // namespace grus::testing
