// SPDX-License-Identifier: Apache-2.0
// Finds what answers a request. The server's lock is held throughout.
#pragma once

#include "clientlib/http/transport.h"
#include "clientlib/testing/api_server/pod_logs.h"
#include "clientlib/testing/api_server/reader.h"
#include "clientlib/testing/api_server/request.h"
#include "clientlib/testing/api_server/storage.h"
#include "clientlib/testing/api_server/writer.h"

namespace kube::testing {

class Router {
 public:
  Router(Storage& storage, const Clock& clock)
      : storage_(storage), clock_(clock), writer_(storage), logs_(storage, clock) {}

  StreamResponse Answer(const HttpRequest& request);  // `stream` is null but for watches and logs.
  Writer& writer() { return writer_; }
  PodLogs& logs() { return logs_; }

 private:
  Outcome<StreamResponse> Route(const HttpRequest& request);
  Outcome<HttpResponse> OnCollection(Table& table, const ResourcePath& path, const HttpRequest& request,
                                     const Target& target);
  Outcome<HttpResponse> OnObject(Table& table, const ObjectKey& key, const HttpRequest& request, const Target& target,
                                 WriteOptions options);
  Outcome<HttpResponse> OnSubresource(Table& table, const ResourcePath& path, const HttpRequest& request,
                                      const Target& target);
  Outcome<HttpResponse> OnScale(Table& table, const ObjectKey& key, const HttpRequest& request,
                                const WriteOptions& options);
  Outcome<HttpResponse> Delete(Table& table, const ObjectKey& key, const HttpRequest& request, const Target& target);
  Outcome<HttpResponse> DeleteCollection(Table& table, const ResourcePath& path, const HttpRequest& request,
                                         const Target& target);

  Storage& storage_;
  const Clock& clock_;
  Writer writer_;
  PodLogs logs_;
};

}  // namespace kube::testing
