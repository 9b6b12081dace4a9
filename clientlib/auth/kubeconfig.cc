// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/kubeconfig.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/auth/files.h"
#include "clientlib/auth/kubeconfig_yaml.h"
#include "clientlib/auth/tls_material.h"

namespace kube {
namespace {

Error Invalid(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

std::string Quoted(std::string_view text) { return std::string("\"").append(text).append("\""); }

// A named cluster, user or context. Relative paths in it start from the folder of its file.
//
// error() is about the first field that was wrong, so that a caller can read all it needs and check once.
class Entry {
 public:
  Entry() = default;
  Entry(std::string kind, std::string name, std::string file, const YAML::Node& node)
      : kind_(std::move(kind)), name_(std::move(name)), file_(std::move(file)), node_(node) {}

  const std::string& file() const { return file_; }
  const std::optional<Error>& error() const { return error_; }

  bool Has(const char* field) const {
    const YAML::Node value = Field(field);
    return value.IsDefined() && !value.IsNull();
  }
  std::string Text(const char* field) { return TextOf(Field(field), field); }
  bool Flag(const char* field) {
    const std::string text = Text(field);
    if (text == "true") return true;
    if (!text.empty() && text != "false") Fail(std::string(field) + " is neither true nor false");
    return false;
  }
  std::vector<std::string> List(const char* field) {
    std::vector<std::string> texts;
    if (!Has(field)) return texts;
    const YAML::Node list = Field(field);
    if (!list.IsSequence()) {
      Fail(std::string(field) + " is not a list");
      return texts;
    }
    for (const YAML::Node& item : list) texts.push_back(TextOf(item, field));
    return texts;
  }
  // The map in `field`; its errors name this entry. REQUIRES: Has(field).
  Entry Part(const char* field) const { return {kind_, name_, file_, Field(field)}; }
  std::vector<Entry> Parts(const char* field) {
    std::vector<Entry> parts;
    if (Has(field) && Field(field).IsSequence()) {
      for (const YAML::Node& item : Field(field)) parts.emplace_back(kind_, name_, file_, item);
    } else if (Has(field)) {
      Fail(std::string(field) + " is not a list");
    }
    return parts;
  }

  // PEM text: from base64 in `data_field`, otherwise from the file that `file_field` names; then also sets `path`.
  std::string Pem(const char* data_field, const char* file_field, std::string& path, const FileReader& read_file) {
    if (const std::string data = Text(data_field); !data.empty()) {
      Result<std::string> decoded = DecodeBase64(data);
      if (decoded) return *std::move(decoded);
      Fail(std::string(data_field) + " is " + decoded.error().message());
      return {};
    }
    path = Path(file_field);
    return path.empty() ? std::string() : FileText(file_field, path, read_file);
  }
  std::string FileText(const char* field, const std::string& path, const FileReader& read_file) {
    Result<std::string> content = read_file(path);
    if (content && !content->empty()) return *std::move(content);
    Fail(std::string(field) + ": " + (content ? path + " is empty" : content.error().message()));
    return {};
  }
  std::string Path(const char* field) {
    const std::string text = Text(field);
    return text.empty() ? text : Resolve(text);
  }
  std::string Resolve(const std::string& path) const {
    return (std::filesystem::path(file_).parent_path() / path).lexically_normal().string();
  }

  void Fail(std::string why) {
    if (!error_) error_ = ErrorHere(std::move(why));
  }
  Error ErrorHere(std::string why) const {
    return Invalid("kubeconfig " + Quoted(file_) + ", " + kind_ + " " + Quoted(name_) + ": " + std::move(why));
  }

 private:
  YAML::Node Field(const char* field) const {
    return node_.IsMap() ? node_[field] : YAML::Node(YAML::NodeType::Undefined);
  }
  std::string TextOf(const YAML::Node& value, const char* field) {
    if (!value.IsDefined() || value.IsNull()) return {};
    if (value.IsScalar()) return value.Scalar();
    Fail(std::string(field) + " is not a plain value");
    return {};
  }

  std::string kind_, name_, file_;
  YAML::Node node_;
  std::optional<Error> error_;
};

// Several kubeconfig files as one: the first file that names an entry, or sets the current context, wins.
class MergedConfig {
 public:
  // Adds the documents of a file.
  Status Add(const std::string& file, const std::string& text);

  const std::string& current_context() const { return current_context_; }
  // Error kInvalidArgument: there is none. The message says who names it (`wanted_by`), and which names exist.
  Result<Entry> Find(const std::string& kind, const std::string& name, const std::string& wanted_by) const;

 private:
  Status AddEntries(const std::string& file, const YAML::Node& document, const char* list, const char* kind);

  std::string current_context_;
  std::map<std::string, std::map<std::string, Entry>> entries_;  // By kind, then name.
};

Status MergedConfig::Add(const std::string& file, const std::string& text) {
  const auto invalid = [&](const std::string& why) { return Invalid("kubeconfig " + Quoted(file) + ": " + why); };
  const Result<std::vector<YAML::Node>> documents = LoadYaml(text);
  if (!documents) return invalid(documents.error().message());
  for (const YAML::Node& document : *documents) {
    if (document.IsNull()) continue;
    if (!document.IsMap()) return invalid("is no YAML map");
    const YAML::Node current = document["current-context"];
    if (current_context_.empty() && current.IsDefined() && current.IsScalar()) current_context_ = current.Scalar();
    for (const auto& [list, kind] : {std::pair{"clusters", "cluster"}, {"users", "user"}, {"contexts", "context"}}) {
      if (Status status = AddEntries(file, document, list, kind); !status) return status;
    }
  }
  return {};
}

Status MergedConfig::AddEntries(const std::string& file, const YAML::Node& document, const char* list,
                                const char* kind) {
  const YAML::Node items = document[list];
  if (!items.IsDefined() || items.IsNull()) return {};
  if (!items.IsSequence()) return Invalid("kubeconfig " + Quoted(file) + ": " + list + " is not a list");
  for (const YAML::Node& item : items) {
    const YAML::Node name = item.IsMap() ? item["name"] : YAML::Node();
    if (!name.IsDefined() || !name.IsScalar()) {
      return Invalid("kubeconfig " + Quoted(file) + ": an entry of " + list + " has no name");
    }
    const YAML::Node content = item[kind].IsDefined() ? item[kind] : YAML::Node(YAML::NodeType::Map);
    const auto [entry, is_new] = entries_[kind].try_emplace(name.Scalar(), kind, name.Scalar(), file, content);
    if (!is_new && entry->second.file() == file) return entry->second.ErrorHere("is there twice; remove one");
  }
  return {};
}

Result<Entry> MergedConfig::Find(const std::string& kind, const std::string& name, const std::string& wanted_by) const {
  std::string known;
  if (const auto named = entries_.find(kind); named != entries_.end()) {
    if (const auto found = named->second.find(name); found != named->second.end()) return found->second;
    for (const auto& [have, entry] : named->second) known += (known.empty() ? "" : ", ") + Quoted(have);
  }
  return Invalid(wanted_by + " names " + kind + " " + Quoted(name) +
                 ", which does not exist; known: " + (known.empty() ? "none" : known));
}

Status ReadCluster(Entry cluster, const FileReader& read_file, ClientConfig& config) {
  config.server = cluster.Text("server");
  while (config.server.ends_with('/')) config.server.pop_back();
  config.ca_pem = cluster.Pem("certificate-authority-data", "certificate-authority", config.ca_file, read_file);
  config.tls_server_name = cluster.Text("tls-server-name");
  config.proxy_url = cluster.Text("proxy-url");
  config.insecure_skip_verify = cluster.Flag("insecure-skip-tls-verify");
  if (cluster.error()) return *cluster.error();

  const auto starts_with_any = [](std::string_view text, std::initializer_list<std::string_view> schemes) {
    for (const std::string_view scheme : schemes) {
      if (text.starts_with(scheme)) return true;
    }
    return false;
  };
  if (!starts_with_any(config.server, {"https://", "http://"})) {
    return cluster.ErrorHere("server must be a URL such as https://host:6443");
  }
  if (!config.proxy_url.empty() && !starts_with_any(config.proxy_url, {"http://", "https://", "socks5://"})) {
    return cluster.ErrorHere("proxy-url must start with http://, https:// or socks5://");
  }
  if (config.insecure_skip_verify && (!config.ca_pem.empty() || !config.ca_file.empty())) {
    return cluster.ErrorHere("insecure-skip-tls-verify and a certificate authority exclude each other; remove one");
  }
  if (!config.ca_pem.empty() || !config.ca_file.empty()) {
    if (Status status = CheckCaCertificate(config.ca_pem); !status) {
      return cluster.ErrorHere("certificate authority: " + status.error().message());
    }
  }
  return {};
}

Status ReadExec(Entry exec, ClientConfig& config) {
  ExecCredentialConfig plugin;
  plugin.api_version = exec.Text("apiVersion");
  plugin.command = exec.Text("command");
  plugin.args = exec.List("args");
  for (Entry& variable : exec.Parts("env")) {
    plugin.env.emplace_back(variable.Text("name"), variable.Text("value"));
    if (variable.error()) return *variable.error();
    if (plugin.env.back().first.empty()) return exec.ErrorHere("exec: an env variable has no name");
  }
  plugin.provide_cluster_info = exec.Flag("provideClusterInfo");
  if (exec.Has("interactiveMode")) plugin.interactive_mode = exec.Text("interactiveMode");
  plugin.install_hint = exec.Text("installHint");
  if (exec.error()) return *exec.error();

  if (plugin.command.empty()) return exec.ErrorHere("exec has no command");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return exec.ErrorHere("exec apiVersion is " + Quoted(plugin.api_version) + "; use client.authentication.k8s.io/v1");
  }
  if (plugin.command.find('/') != std::string::npos) plugin.command = exec.Resolve(plugin.command);
  config.exec = std::move(plugin);
  return {};
}

Status ReadImpersonation(Entry& user, ClientConfig& config) {
  config.impersonate_user = user.Text("as");
  config.impersonate_uid = user.Text("as-uid");
  config.impersonate_groups = user.List("as-groups");
  if (user.error()) return *user.error();
  // Without it, requests would have other rights than the user asked for.
  if (user.Has("as-user-extra")) return user.ErrorHere("as-user-extra is not supported; remove it");
  if (config.impersonate_user.empty() && !(config.impersonate_uid.empty() && config.impersonate_groups.empty())) {
    return user.ErrorHere("as-uid and as-groups need as");
  }
  return {};
}

Status ReadUser(Entry user, const FileReader& read_file, ClientConfig& config) {
  if (user.Has("auth-provider")) {
    return user.ErrorHere("auth-provider was removed from Kubernetes clients; use an exec plugin instead");
  }
  config.cert_pem = user.Pem("client-certificate-data", "client-certificate", config.cert_file, read_file);
  config.key_pem = user.Pem("client-key-data", "client-key", config.key_file, read_file);
  config.token = user.Text("token");
  config.token_file = user.Path("tokenFile");
  config.username = user.Text("username");
  config.password = user.Text("password");
  if (!config.token_file.empty()) user.FileText("tokenFile", config.token_file, read_file);  // Must be readable.
  if (user.error()) return *user.error();

  if (config.cert_pem.empty() != config.key_pem.empty()) {
    return user.ErrorHere(config.key_pem.empty() ? "client certificate without a client key"
                                                 : "client key without a client certificate");
  }
  if (!config.cert_pem.empty()) {
    if (Status status = CheckClientCertificate(config.cert_pem, config.key_pem); !status) {
      return user.ErrorHere(status.error().message());
    }
  }
  const bool has_token = !config.token.empty() || !config.token_file.empty();
  if (has_token && !config.username.empty()) {
    return user.ErrorHere("a token and a user name exclude each other; remove one");
  }
  if (!config.token.empty()) {
    Result<std::string> token = CleanToken(config.token);
    if (!token) return user.ErrorHere(token.error().message());
    config.token = *std::move(token);
  }
  if (user.Has("exec")) {
    if (Status status = ReadExec(user.Part("exec"), config); !status) return status;
  }
  return ReadImpersonation(user, config);
}

// The files to read, and whether one that is missing is an error.
struct FileList {
  std::vector<std::string> paths;
  bool may_miss = false;
  std::string from;  // Who named them.
};

Result<FileList> FilesOf(const KubeconfigOptions& options) {
  if (!options.path.empty()) return FileList{{options.path}, false, "the given path"};
  FileList list;
  if (const char* variable = std::getenv("KUBECONFIG"); variable != nullptr && *variable != '\0') {
    list = {{}, true, "KUBECONFIG"};
    std::string_view rest = variable;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) list.paths.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!list.paths.empty()) return list;
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return Invalid("no kubeconfig: neither KUBECONFIG nor HOME is set");
  return FileList{{std::string(home) + "/.kube/config"}, false, "the default; set KUBECONFIG for another"};
}

}  // namespace

Result<ClientConfig> LoadKubeconfig(const KubeconfigOptions& options) { return LoadKubeconfig(options, ReadSmallFile); }

Result<ClientConfig> LoadKubeconfig(const KubeconfigOptions& options, const FileReader& read_file) {
  Result<FileList> files = FilesOf(options);
  if (!files) return std::move(files).error();
  MergedConfig merged;
  std::string names;
  bool found_any = false;
  for (const std::string& path : files->paths) {
    // Relative paths in the file start from its folder: make that independent of this process's current folder.
    const std::string file = std::filesystem::absolute(path).lexically_normal().string();
    names += (names.empty() ? "" : ", ") + Quoted(file);
    Result<std::string> text = read_file(file);
    if (!text && files->may_miss && text.error().code() == ErrorCode::kNotFound) continue;
    if (!text) return std::move(text).error().with("kubeconfig (" + files->from + ")");
    if (Status status = merged.Add(file, *text); !status) return std::move(status).error();
    found_any = true;
  }
  if (!found_any) return Error(ErrorCode::kNotFound, "kubeconfig: none of the files in KUBECONFIG exists: " + names);

  const std::string context_name = options.context.empty() ? merged.current_context() : options.context;
  if (context_name.empty()) {
    return Invalid("kubeconfig " + names + ": no current context; choose one with `kubectl config use-context NAME`");
  }
  const std::string asker = options.context.empty() ? "current-context" : "the caller";
  Result<Entry> context = merged.Find("context", context_name, "kubeconfig " + names + ": " + asker);
  if (!context) return std::move(context).error();

  ClientConfig config;
  config.source = "kubeconfig " + Quoted(context->file()) + ", context " + Quoted(context_name);
  const std::string cluster_name = context->Text("cluster");
  const std::string user_name = context->Text("user");
  if (const std::string name = context->Text("namespace"); !name.empty()) config.default_namespace = name;
  if (context->error()) return *context->error();

  Result<Entry> cluster = merged.Find("cluster", cluster_name, config.source);
  if (!cluster) return std::move(cluster).error();
  if (Status status = ReadCluster(*std::move(cluster), read_file, config); !status) return std::move(status).error();
  if (user_name.empty()) return config;  // Anonymous.
  Result<Entry> user = merged.Find("user", user_name, config.source);
  if (!user) return std::move(user).error();
  if (Status status = ReadUser(*std::move(user), read_file, config); !status) return std::move(status).error();
  return config;
}

}  // namespace kube
