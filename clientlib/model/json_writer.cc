// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_writer.h"

#include <cmath>

#include "clientlib/model/rapidjson_config.h"
#include "clientlib/model/utf8.h"

// After its configuration.
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kube {
namespace {

bool IsOmitted(const FieldInfo& field, const void* source);

// Whether the field can be left out. Numbers and booleans are never empty.
bool IsEmpty(const TypeOps& type, const void* source) {
  switch (type.shape) {
    case Shape::kString: return static_cast<const std::string*>(source)->empty();
    case Shape::kCompactString: return static_cast<const CompactString*>(source)->empty();
    case Shape::kTime: return *static_cast<const Time*>(source) == Time{};
    case Shape::kMicroTime: return *static_cast<const MicroTime*>(source) == MicroTime{};
    case Shape::kJson: return static_cast<const Json*>(source)->is_null();
    case Shape::kEnum: return type.enum_names()[type.enum_index(source)].empty();
    case Shape::kOptional: return type.value(source) == nullptr;
    case Shape::kList:
    case Shape::kMap: return type.size(source) == 0;
    case Shape::kStruct:
      for (const FieldInfo& field : type.fields()) {
        if (!IsOmitted(field, field.get(const_cast<void*>(source)))) return false;
      }
      return true;
    default: return false;
  }
}

bool IsZero(const TypeOps& type, const void* source) {
  switch (type.shape) {
    case Shape::kBool: return !*static_cast<const bool*>(source);
    case Shape::kInt32: return *static_cast<const std::int32_t*>(source) == 0;
    case Shape::kInt64: return *static_cast<const std::int64_t*>(source) == 0;
    case Shape::kDouble: return *static_cast<const double*>(source) == 0;
    case Shape::kQuantity: return static_cast<const Quantity*>(source)->is_zero();
    case Shape::kIntOrString: return *static_cast<const IntOrString*>(source) == IntOrString{};
    case Shape::kEnum: return type.enum_index(source) == 0;
    default: return false;
  }
}

bool IsOmitted(const FieldInfo& field, const void* source) {
  if (field.rules.read_only) return true;
  if (field.rules.required) return false;
  return IsEmpty(*field.type, source) || (field.rules.omit_zero && IsZero(*field.type, source));
}

}  // namespace

struct JsonWriter::Impl {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
};

JsonWriter::JsonWriter() : impl_(std::make_unique<Impl>()) {}
JsonWriter::~JsonWriter() = default;

void JsonWriter::Null() { impl_->writer.Null(); }
void JsonWriter::Bool(bool value) { impl_->writer.Bool(value); }
void JsonWriter::Int(std::int64_t value) { impl_->writer.Int64(value); }
void JsonWriter::Double(double value) {
  if (std::isfinite(value)) {
    impl_->writer.Double(value);
  } else {
    impl_->writer.Null();
  }
}
void JsonWriter::String(std::string_view value) {
  if (!IsValidUtf8(value)) return String(RepairUtf8(value));
  // RapidJSON accepts no null pointer, not even for an empty string.
  impl_->writer.String(value.empty() ? "" : value.data(), static_cast<rapidjson::SizeType>(value.size()));
}
void JsonWriter::Key(std::string_view key) { String(key); }
void JsonWriter::StartObject() { impl_->writer.StartObject(); }
void JsonWriter::EndObject() { impl_->writer.EndObject(); }
void JsonWriter::StartArray() { impl_->writer.StartArray(); }
void JsonWriter::EndArray() { impl_->writer.EndArray(); }

void JsonWriter::Value(const Json& value) {
  if (const bool* b = value.AsBool()) return Bool(*b);
  if (const std::int64_t* i = value.AsInt()) return Int(*i);
  if (const double* d = value.AsDouble()) return Double(*d);
  if (const std::string* s = value.AsString()) return String(*s);
  if (const Json::Array* items = value.AsArray()) {
    StartArray();
    for (const Json& item : *items) Value(item);
    return EndArray();
  }
  if (const Json::Object* members = value.AsObject()) {
    StartObject();
    for (const auto& [key, member] : *members) {
      Key(key);
      Value(member);
    }
    return EndObject();
  }
  Null();
}

void JsonWriter::Members(std::span<const FieldInfo> fields, const void* source) {
  for (const FieldInfo& field : fields) {
    const void* const member = field.get(const_cast<void*>(source));
    if (IsOmitted(field, member)) continue;
    Key(field.name);
    Typed(*field.type, member);
  }
}

void JsonWriter::Typed(const TypeOps& type, const void* source) {
  switch (type.shape) {
    case Shape::kBool: return Bool(*static_cast<const bool*>(source));
    case Shape::kInt32: return Int(*static_cast<const std::int32_t*>(source));
    case Shape::kInt64: return Int(*static_cast<const std::int64_t*>(source));
    case Shape::kDouble: return Double(*static_cast<const double*>(source));
    case Shape::kString: return String(*static_cast<const std::string*>(source));
    case Shape::kCompactString: return String(static_cast<const CompactString*>(source)->view());
    case Shape::kTime: return String(ToText(*static_cast<const Time*>(source)));
    case Shape::kMicroTime: return String(ToMicroText(*static_cast<const MicroTime*>(source)));
    case Shape::kQuantity: return String(ToText(*static_cast<const Quantity*>(source)));
    case Shape::kJson: return Value(*static_cast<const Json*>(source));
    case Shape::kEnum: return String(type.enum_names()[type.enum_index(source)]);
    case Shape::kIntOrString: {
      const auto& value = *static_cast<const IntOrString*>(source);
      return value.AsInt() ? Int(*value.AsInt()) : String(*value.AsString());
    }
    case Shape::kOptional: {
      const void* const value = type.value(source);  // Null only where a required field is unset.
      return value ? Typed(*type.element, value) : Null();
    }
    case Shape::kStruct:
      StartObject();
      Members(type.fields(), source);
      return EndObject();
    case Shape::kList:
      StartArray();
      for (std::size_t i = 0; i < type.size(source); ++i) Typed(*type.element, type.at(const_cast<void*>(source), i));
      return EndArray();
    case Shape::kMap: {
      struct Context {
        JsonWriter& writer;
        const TypeOps& element;
      } context{*this, *type.element};
      StartObject();
      type.visit(source, &context, [](void* c, std::string_view key, const void* value) {
        auto& [writer, element] = *static_cast<Context*>(c);
        writer.Key(key);
        writer.Typed(element, value);
      });
      return EndObject();
    }
  }
}

std::string JsonWriter::Take() { return {impl_->buffer.GetString(), impl_->buffer.GetSize()}; }

}  // namespace kube
