// SPDX-License-Identifier: Apache-2.0
// Carries out writes: admission, preconditions, and then the storage.
// The server's lock is held throughout.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/request.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

struct Written {
  RevisionPtr revision;
  bool is_created = false;
  std::vector<std::string> warnings = {};  // For Warning headers.
};

struct Deleted {
  RevisionPtr revision;  // Its last state.
  bool is_gone = false;  // Otherwise it waits for finalizers or its grace period.
};

class Writer {
 public:
  explicit Writer(Storage& storage) : storage_(storage) {}

  Outcome<Written> Create(Table& table, std::string_view ns, Json object, const WriteOptions& options);
  // PUT. `options.subresource`: "", "status".
  Outcome<Written> Update(Table& table, const ObjectKey& key, Json object, const WriteOptions& options);
  Outcome<Written> Patch(Table& table, const ObjectKey& key, std::string_view media_type, std::string_view body,
                         const WriteOptions& options);
  // `delete_options`: a DeleteOptions object, or null.
  Outcome<Deleted> Delete(Table& table, const ObjectKey& key, const Json& delete_options, bool is_dry_run);

  // subresources.cc
  Json ScaleOf(const ResourceInfo& info, const Json& object) const;
  Outcome<Json> UpdateScale(Table& table, const ObjectKey& key, const Json& scale, const WriteOptions& options);
  Outcome<Json> PatchScale(Table& table, const ObjectKey& key, std::string_view media_type, std::string_view body,
                           const WriteOptions& options);
  Check Bind(const ObjectKey& pod, const Json& binding, const WriteOptions& options);
  // Replaces a namespace's spec.finalizers.
  Outcome<Written> Finalize(Table& namespaces, const ObjectKey& key, const Json& object, const WriteOptions& options);

 private:
  Check CheckNamespace(const ResourceInfo& info, const std::string& ns, std::string_view name);
  // Prepares what a client sent: checks the kind and unknown fields, sets defaults.
  Check Decode(const ResourceInfo& info, Json& object, const WriteOptions& options, std::vector<std::string>& warnings);
  std::vector<FieldError> Validate(const ResourceInfo& info, const Json& object, const Json* before) const;
  // An update of any kind, from `before` to `object`, which was decoded.
  Outcome<Written> Store(Table& table, const RevisionPtr& before, Json object, const WriteOptions& options);

  RevisionPtr Commit(Table& table, Json object);
  RevisionPtr Remove(Table& table, const RevisionPtr& live);  // Returns what watches see last.
  Check ServeDefinition(const Json& definition, bool is_dry_run);
  void EmptyDefinition(const ObjectKey& key);  // Of a CRD that is being deleted.
  void FinishDefinition(const ResourceInfo& info);

  Storage& storage_;
};

// The object that a client sent. 400 if it is no JSON object. `duplicates`: keys that occur more than once.
Outcome<Json> ParseBody(const ResourceInfo& info, std::string_view body, std::vector<std::string>& duplicates);

}  // namespace kube::testing
