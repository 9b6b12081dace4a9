// SPDX-License-Identifier: Apache-2.0
// What an API server answers who lists and watches ConfigMaps: objects, lines of a watch, whole lists.
#pragma once

#include <string>
#include <vector>

#include "clientlib/testing/fake_transport.h"

namespace kube::testing {

inline std::string MapText(const std::string& name, const std::string& version, const std::string& uid = {}) {
  return R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")" + name + R"(","namespace":"ns","uid":")" +
         (uid.empty() ? "u-" + name : uid) + R"(","resourceVersion":")" + version + R"("}})";
}
// A ConfigMap with data of a type that it cannot have.
inline std::string Unreadable(const std::string& name, const std::string& version, const std::string& uid = {}) {
  const std::string text = MapText(name, version, uid);
  return text.substr(0, text.size() - 1) + R"(,"data":7})";
}
inline std::string EventLine(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
inline std::string Added(const std::string& name, const std::string& version) {
  return EventLine("ADDED", MapText(name, version));
}
inline std::string Modified(const std::string& name, const std::string& version) {
  return EventLine("MODIFIED", MapText(name, version));
}
inline std::string Deleted(const std::string& name, const std::string& version) {
  return EventLine("DELETED", MapText(name, version));
}
inline std::string Bookmark(const std::string& version) {
  return EventLine("BOOKMARK",
                   R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":")" + version + R"("}})");
}
inline std::string InitialEnd(const std::string& version, const std::string& mark = "\"true\"") {
  return EventLine("BOOKMARK", R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":")" + version +
                                   R"(","annotations":{"k8s.io/initial-events-end":)" + mark + "}}}");
}
inline std::string ErrorLine(int code, const std::string& reason, const std::string& message = "said no") {
  return EventLine("ERROR", StatusAnswer(code, reason, message).body);
}
inline HttpResponse ListAnswer(const std::string& version, const std::vector<std::string>& items = {}) {
  std::string body =
      R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":")" + version + R"("},"items":[)";
  for (const std::string& item : items) body += (body.ends_with('[') ? "" : ",") + item;
  return JsonAnswer(200, body + "]}");
}
inline HttpResponse TooLargeAnswer() {
  return StatusAnswer(504, "Timeout", "Too large resource version: 9, current: 5");
}

}  // namespace kube::testing
