// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/writer.h"

#include <algorithm>

#include "clientlib/testing/api_server/custom_resources.h"
#include "clientlib/testing/api_server/event_mirror.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/lenient_json.h"
#include "clientlib/testing/api_server/object_rules.h"
#include "clientlib/testing/api_server/quota.h"

namespace kube::testing {
namespace {

std::string Quoted(std::string_view text) { return Concat({"\"", text, "\""}); }

// A status update takes only the status; for built-in kinds also metadata.
void CarryForStatus(const ResourceInfo& info, const Json& before, Json& object) {
  Json status = object.Find("status") ? *object.Find("status") : Json();
  Json metadata = *object.Find("metadata");
  object = before;
  if (!info.is_custom) object["metadata"] = std::move(metadata);
  if (status.is_null()) {
    object.Erase("status");
  } else {
    object["status"] = std::move(status);
  }
}

bool WaitsForNothing(const Json& object) {
  return IsBeingDeleted(object) && IsEmptyAt(object, {"metadata", "finalizers"}) &&
         IntAt(object, {"metadata", "deletionGracePeriodSeconds"}) == 0 &&
         !(TextAt(object, {"kind"}) == "Namespace" && !IsEmptyAt(object, {"spec", "finalizers"}));
}

void WarnOfFinalizers(const Json& object, std::vector<std::string>& warnings) {
  const Json* const finalizers = object.At({"metadata", "finalizers"});
  if (!finalizers || !finalizers->AsArray()) return;
  for (const Json& item : *finalizers->AsArray()) {
    const std::string* const name = item.AsString();
    if (!name || name->find('/') != std::string::npos || *name == "orphan" || *name == "foregroundDeletion" ||
        *name == kDefinitionFinalizer) {
      continue;
    }
    warnings.push_back(Concat({"metadata.finalizers: \"", *name,
                               "\": prefer a domain-qualified finalizer name to avoid accidental conflicts with "
                               "other finalizer writers"}));
  }
}

// Warns of `fields`, or refuses them.
Check CheckUnknown(const ResourceInfo& info, std::vector<std::string> fields, const WriteOptions& options,
                   std::vector<std::string>& warnings) {
  if ((fields.empty() && options.duplicate_fields.empty()) || !(options.is_strict || options.warns)) return Done();
  std::sort(fields.begin(), fields.end());
  for (const std::string& field : options.duplicate_fields) {
    warnings.push_back(Concat({"duplicate field ", Quoted(field)}));
  }
  for (const std::string& field : fields) warnings.push_back(Concat({"unknown field ", Quoted(field)}));
  std::string all;
  for (const std::string& warning : warnings) {
    if (warning.starts_with("metadata.finalizers")) continue;
    all += (all.empty() ? "" : ", ") + warning;
  }
  if (!options.is_strict) return Done();
  return BadRequest(Concat({info.kind, " in version \"", info.version, "\" cannot be handled as a ", info.kind,
                            ": strict decoding error: ", all}));
}

ApiError MissingVersion(const ResourceInfo& info, std::string_view name) {
  return Invalid(info.group, info.plural, name,
                 {InvalidField("metadata.resourceVersion", "0", "must be specified for an update")});
}

}  // namespace

Outcome<Json> ParseBody(const ResourceInfo& info, std::string_view body, std::vector<std::string>& duplicates) {
  Result<Json> object = ParseLenientJson(body, duplicates);
  if (object && object->is_object()) return *std::move(object);
  const std::string why = object ? "it is no object" : object.error().message();
  return BadRequest("the object provided is unrecognized (must be of type " + info.kind +
                    "): couldn't get version/kind; json parse error: " + why);
}

Check Writer::CheckNamespace(const ResourceInfo& info, const std::string& ns, std::string_view name) {
  if (!info.is_namespaced) return Done();
  Table& namespaces = *storage_.Find("namespaces");
  const RevisionPtr found = storage_.Get(namespaces, {"", ns});
  if (!found) return NotFound(*namespaces.info, ns);
  if (!IsBeingDeleted(found->object())) return Done();
  ApiError error =
      Forbidden(info, name, "unable to create new content in namespace " + ns + " because it is being terminated");
  error.details["causes"].Append(Json::MakeObject({{"reason", "NamespaceTerminating"},
                                                   {"message", "namespace " + ns + " is being terminated"},
                                                   {"field", "metadata.namespace"}}));
  return error;
}

Check Writer::Decode(const ResourceInfo& info, Json& object, const WriteOptions& options,
                     std::vector<std::string>& warnings) {
  if (Check kind = CheckKind(info, object); !kind) return kind;
  WarnOfFinalizers(object, warnings);
  std::vector<std::string> unknown = PruneEnvelope(info, object);
  if (!info.is_custom) {
    if (Check known = CheckUnknown(info, std::move(unknown), options, warnings); !known) return known;
    RemoveNulls(object);
    ObjectIn(object, "metadata");
    if (info.schema) info.schema->SetDefaults(object);
    if (info.rules && info.rules->set_defaults) info.rules->set_defaults(object);
    return Done();
  }
  RemoveNulls(object["metadata"]);
  if (info.schema && (options.is_strict || options.warns)) {
    for (std::string& field : UnknownFields(*info.schema, object)) unknown.push_back(std::move(field));
  }
  if (Check known = CheckUnknown(info, std::move(unknown), options, warnings); !known) return known;
  if (!info.schema) return Done();
  info.schema->Prune(object);
  info.schema->SetDefaults(object);
  return Done();
}

std::vector<FieldError> Writer::Validate(const ResourceInfo& info, const Json& object, const Json* before) const {
  std::vector<FieldError> errors = ValidateMetadata(info, object, before);
  std::vector<FieldError> more;
  if (info.is_custom && info.schema) more = info.schema->Validate(object);
  if (info.is_custom && info.has_scale) {
    for (const auto* const path : {&info.replicas_path, &info.status_replicas_path}) {
      std::string name;
      const Json* at = &object;
      for (const std::string& step : *path) {
        name += "." + step;
        if (at) at = at->Find(step);
      }
      if (path->empty() || !at || !at->AsInt() || *at->AsInt() >= 0) continue;
      more.push_back(InvalidField(name, ToText(*at), "should be a non-negative integer"));
    }
  }
  if (info.rules && info.rules->validate) more = info.rules->validate(object, before);
  errors.insert(errors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return errors;
}

Outcome<Written> Writer::Create(Table& table, std::string_view ns, Json object, const WriteOptions& options) {
  if (Json* const metadata = object.Find("metadata")) metadata->Erase("managedFields");
  const std::shared_ptr<const ResourceInfo> info = table.info;
  Written written{nullptr, true};
  if (Check decoded = Decode(*info, object, options, written.warnings); !decoded) return decoded.error();
  if (info->has_status && !info->Is("", "nodes")) object.Erase("status");
  if (!info->is_namespaced) {
    object["metadata"].Erase("namespace");
  } else if (const std::string_view own = TextAt(object, {"metadata", "namespace"}); own.empty()) {
    object["metadata"]["namespace"] = ns;
  } else if (own != ns) {
    return BadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  std::string asked(NameOf(object));  // The name that admission uses for an object whose name is not generated yet.
  if (const std::string prefix(TextAt(object, {"metadata", "generateName"})); asked.empty() && !prefix.empty()) {
    asked = prefix;
    object["metadata"]["name"] = storage_.MakeName(prefix);
    if (info->rules && info->rules->set_defaults) info->rules->set_defaults(object);
  }
  const std::string name(NameOf(object));
  if (info->is_terminating) {
    return ApiError{405, "MethodNotAllowed", "create not allowed while custom resource definition is terminating",
                    Json::MakeObject()};
  }
  if (Check there = CheckNamespace(*info, std::string(ns), name); !there) return there.error();

  Json& metadata = object["metadata"];  // Members of `object` stay where they are from here on.
  for (const std::string_view field : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"}) {
    metadata.Erase(field);
  }
  if (const std::string_view version = TextAt(metadata, {"resourceVersion"}); !version.empty() && version != "0") {
    return ApiError{500, "", "resourceVersion should not be set on objects to be created"};
  }
  metadata.Erase("resourceVersion");
  metadata["uid"] = storage_.MakeUid();
  metadata["creationTimestamp"] = storage_.Now();
  if (info->has_generation) metadata["generation"] = 1;
  if (info->rules && info->rules->admit) {
    if (const std::string why = info->rules->admit(object, storage_); !why.empty()) return Forbidden(*info, asked, why);
  }
  if (info->rules && info->rules->prepare) info->rules->prepare(object, storage_);

  if (const auto errors = Validate(*info, object, nullptr); !errors.empty()) return Invalid(*info, name, errors);
  if (info->rules && info->rules->forbid) {
    if (const std::string why = info->rules->forbid(object, storage_); !why.empty()) return Forbidden(*info, name, why);
  }
  std::vector<Json> charged;
  if (info->Is("", "pods")) {
    Outcome<std::vector<Json>> admitted = AdmitByQuotas(*info, object, storage_);
    if (!admitted) return admitted.error();
    charged = *std::move(admitted);
  }
  if (const RevisionPtr other = storage_.Get(table, KeyOf(object))) {
    ApiError error = AlreadyExists(*info, name);
    if (IsBeingDeleted(other->object())) error.message.insert(0, "object is being deleted: ");
    return error;
  }
  if (info->Is(kDefinitionGroup, kDefinitions)) {
    if (Check served = ServeDefinition(object, options.is_dry_run); !served) return served.error();
  }
  for (Json& quota : charged) {
    if (!options.is_dry_run) Commit(*storage_.Find("resourcequotas"), std::move(quota));
  }
  written.revision =
      options.is_dry_run ? std::make_shared<const Revision>(std::move(object), 0) : Commit(table, std::move(object));
  return written;
}

Outcome<Written> Writer::Update(Table& table, const ObjectKey& key, Json object, const WriteOptions& options) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  if (Check kind = CheckKind(*info, object); !kind) return kind.error();
  const std::string name(NameOf(object));
  if (name.empty() && info->is_custom) {
    return BadRequest("the name of the object (" + key.name +
                      " based on URL) was undeterminable: name must be provided");
  }
  if (!name.empty() && name != key.name) {
    return BadRequest("the name of the object (" + name + ") does not match the name on the URL (" + key.name + ")");
  }
  const std::string_view ns = TextAt(object, {"metadata", "namespace"});
  if (info->is_namespaced && !ns.empty() && ns != key.ns) {
    return BadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const RevisionPtr before = storage_.Get(table, key);
  const std::string version(TextAt(object, {"metadata", "resourceVersion"}));
  const bool has_version = !version.empty() && version != "0";
  if (!before) {
    if (info->is_create_allowed_on_update && options.subresource.empty() && !has_version) {
      object["metadata"]["name"] = key.name;
      return Create(table, key.ns, std::move(object), options);
    }
    return NotFound(*info, key.name);
  }
  const std::string uid(TextAt(object, {"metadata", "uid"})), own(TextAt(before->object(), {"metadata", "uid"}));
  if (!uid.empty() && uid != own) {
    const std::string group = info->group.empty() ? "" : info->is_custom ? info->group + "/" : "";
    return Conflict(*info, key.name,
                    "StorageError: invalid object, Code: 4, Key: /registry/" + group + info->plural + "/" +
                        (key.ns.empty() ? "" : key.ns + "/") + key.name +
                        ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + own);
  }
  if (!has_version && !info->is_unconditional_update_allowed) return MissingVersion(*info, key.name);
  std::vector<std::string> warnings;
  if (Check decoded = Decode(*info, object, options, warnings); !decoded) return decoded.error();
  Outcome<Written> written = Store(table, before, std::move(object), options);
  if (written) written->warnings = std::move(warnings);
  return written;
}

Outcome<Written> Writer::Store(Table& table, const RevisionPtr& before, Json object, const WriteOptions& options) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  const Json& old = before->object();
  const std::string name(NameOf(old));
  const std::string version(TextAt(object, {"metadata", "resourceVersion"}));
  if (!version.empty() && version != "0" && version != std::to_string(before->number())) {
    return ModifiedMeanwhile(*info, name);
  }
  if (Json* const metadata = object.Find("metadata")) metadata->Erase("managedFields");
  if (options.subresource == "status") {
    CarryForStatus(*info, old, object);
  } else if (info->has_status) {
    CopyMember(old, object, "status");
  }
  const Json* const end = object.At({"metadata", "deletionTimestamp"});
  if (end && end->AsString() && !Same(end, old.At({"metadata", "deletionTimestamp"}))) {
    return Invalid(*info, name, {InvalidField("metadata.deletionTimestamp", ToText(*end), "field is immutable")});
  }
  CarryMetadata(old, object);
  if (options.subresource.empty() && info->rules && info->rules->carry) info->rules->carry(old, object);
  if (const auto errors = Validate(*info, object, &old); !errors.empty()) return Invalid(*info, name, errors);
  if (info->has_generation && IsNewGeneration(*info, old, object)) {
    object["metadata"]["generation"] = IntAt(old, {"metadata", "generation"}) + 1;
  }
  if (old == object) return Written{before};
  if (info->Is(kDefinitionGroup, kDefinitions)) {
    if (Check served = ServeDefinition(object, options.is_dry_run); !served) return served.error();
  }
  if (options.is_dry_run) return Written{std::make_shared<const Revision>(std::move(object), before->number())};
  if (WaitsForNothing(object)) {
    // The answer is what the client sent, which is never stored; watches see the object as it was last stored.
    Remove(table, before);
    return Written{std::make_shared<const Revision>(std::move(object), before->number())};
  }
  return Written{Commit(table, std::move(object))};
}

RevisionPtr Writer::Commit(Table& table, Json object) {
  RevisionPtr stored = storage_.Put(table, std::move(object));
  if (table.info->kind == "Event" && !table.info->is_custom) MirrorEvent(storage_, *table.info, stored->object());
  return stored;
}

RevisionPtr Writer::Remove(Table& table, const RevisionPtr& live) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  RevisionPtr last = storage_.Erase(table, live->object());
  if (info->kind == "Event" && !info->is_custom) EraseMirroredEvent(storage_, *info, KeyOf(last->object()));
  if (info->Is(kDefinitionGroup, kDefinitions)) {
    storage_.Remove(NameOf(last->object()));
  } else if (info->is_terminating && table.objects.empty()) {
    FinishDefinition(*info);  // This destroys `table`.
  }
  return last;
}

Check Writer::ServeDefinition(const Json& definition, bool is_dry_run) {
  Outcome<std::shared_ptr<const ResourceInfo>> info = InfoFromDefinition(definition);
  if (!info) return info.error();
  if (!is_dry_run) storage_.Add(*info);
  return Done();
}

void Writer::EmptyDefinition(const ObjectKey& key) {
  Table& definitions = *storage_.Find(std::string(kDefinitions) + "." + std::string(kDefinitionGroup));
  if (const RevisionPtr definition = storage_.Get(definitions, key)) {
    Check served = ServeDefinition(definition->object(), false);  // It now says that it is terminating.
    if (!served) return;
  }
  Table* const table = storage_.Find(key.name);
  if (!table) return;
  std::vector<ObjectKey> keys;
  for (const auto& [object, revision] : table->objects) keys.push_back(object);
  if (keys.empty()) return FinishDefinition(*table->info);
  for (const ObjectKey& object : keys) (void)Delete(*table, object, {}, false);
}

void Writer::FinishDefinition(const ResourceInfo& info) {
  Table& definitions = *storage_.Find(std::string(kDefinitions) + "." + std::string(kDefinitionGroup));
  const RevisionPtr definition = storage_.Get(definitions, {"", info.Id()});
  if (!definition) return;
  Json object = definition->object();
  if (Json* const finalizers = object["metadata"].Find("finalizers"); finalizers && finalizers->AsArray()) {
    std::erase(*finalizers->AsArray(), Json(kDefinitionFinalizer));
    if (finalizers->AsArray()->empty()) object["metadata"].Erase("finalizers");
  }
  if (WaitsForNothing(object)) {
    Remove(definitions, definition);
  } else {
    Commit(definitions, std::move(object));
  }
}

}  // namespace kube::testing
