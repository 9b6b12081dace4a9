// SPDX-License-Identifier: Apache-2.0
// From C++ values to JSON text, by the tables of field.h. Compact; invalid UTF-8 becomes U+FFFD, numbers that
// JSON cannot hold become null, so that the text is always valid. Not thread-safe; one per text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "clientlib/model/field.h"
#include "clientlib/model/json.h"

namespace kube {

class JsonWriter {
 public:
  JsonWriter();
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void Null();
  void Bool(bool value);
  void Int(std::int64_t value);
  void Double(double value);
  void String(std::string_view value);
  void Key(std::string_view key);  // REQUIRES: in an object; one value follows.
  void StartObject();
  void EndObject();
  void StartArray();
  void EndArray();

  void Value(const Json& value);
  // The members of the struct at `source`; between StartObject() and EndObject().
  void Members(std::span<const FieldInfo> fields, const void* source);

  std::string Take();  // REQUIRES: one whole value was written.

 private:
  void Typed(const TypeOps& type, const void* source);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The text of a struct with Fields().
template <typename T>
std::string WriteText(const T& value) {
  JsonWriter writer;
  writer.StartObject();
  writer.Members(T::Fields(), &value);
  writer.EndObject();
  return writer.Take();
}

// The same as a Json value: bodies of server-side apply and of patches.
Json ToJson(std::span<const FieldInfo> fields, const void* source);
template <typename T>
Json ToJson(const T& value) {
  return ToJson(T::Fields(), &value);
}

}  // namespace kube
