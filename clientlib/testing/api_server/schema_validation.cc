// SPDX-License-Identifier: Apache-2.0
// Validation as the server does it for custom resources (kube-openapi's validate package), its wording
// included.
#include <algorithm>
#include <cmath>
#include <limits>

#include "clientlib/model/time.h"
#include "clientlib/testing/api_server/field_type.h"
#include "clientlib/testing/api_server/schema_node.h"

namespace kube::testing::internal {
namespace {

constexpr std::string_view kNoField = "<nil>";  // What Go prints for the server's null path.

struct TypeName {
  unsigned bit = 0;
  std::string_view name, format;
};

TypeName TypeOf(const Json& value) {
  if (value.AsBool()) return {kBoolean, "boolean", ""};
  if (value.AsInt()) return {kInteger, "integer", "int64"};
  if (value.AsDouble()) return {kNumber, "number", "float64"};
  if (value.AsString()) return {kString, "string", ""};
  if (value.AsArray()) return {kArray, "array", ""};
  return {kObject, "object", ""};
}

bool IsNumber(const Json& value) { return value.AsInt() || value.AsDouble(); }

double ToDouble(const Json& number) {
  return number.AsInt() ? static_cast<double>(*number.AsInt()) : *number.AsDouble();
}

int Order(const Json& a, const Json& b) {
  if (a.AsInt() && b.AsInt()) return *a.AsInt() < *b.AsInt() ? -1 : *a.AsInt() > *b.AsInt() ? 1 : 0;
  return ToDouble(a) < ToDouble(b) ? -1 : ToDouble(a) > ToDouble(b) ? 1 : 0;
}

bool IsWhole(double number) { return std::trunc(number) == number && std::abs(number) <= 9007199254740991.0; }

// Whether `format` can hold the integer.
bool IsInRange(const Json& number, std::string_view format) {
  if (number.AsDouble() && !IsWhole(*number.AsDouble())) return false;
  using Limits = std::numeric_limits<std::int32_t>;
  return format != "int32" || (ToDouble(number) >= Limits::min() && ToDouble(number) <= Limits::max());
}

std::int64_t CountCharacters(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

bool IsDate(std::string_view text) { return text.size() == 10 && ParseTime(std::string(text) + "T00:00:00Z").ok(); }

bool HasFormat(std::string_view text, std::string_view format) {
  if (format == "date-time") return ParseTime(text).ok();
  if (format == "date") return IsDate(text);
  return true;
}

std::string Quote(std::string_view text) { return ToText(Json(text)); }

// Collects errors; an equal one is reported once, as on the server.
class Errors {
 public:
  void Add(std::string_view reason, std::string message, std::string_view field) {
    for (const FieldError& known : list_) {
      if (known.message == message && known.field == field) return;
    }
    list_.push_back({std::string(reason), std::move(message), std::string(field)});
  }
  // "Invalid value: VALUE: PATH in body TEXT".
  void Invalid(const std::string& path, const Json& value, const std::string& text) {
    Add("FieldValueInvalid", "Invalid value: " + ToText(value) + ": " + path + " in body " + text, path);
  }
  void WrongType(const std::string& path, std::string_view wanted, std::string_view got) {
    Add("FieldValueTypeInvalid",
        "Invalid value: " + Quote(got) + ": " + path + " in body must be of type " + std::string(wanted) + ": " +
            Quote(got),
        path);
  }
  void TooMany(const std::string& path, std::int64_t count, std::int64_t limit) {
    Add("FieldValueTooMany",
        "Too many: " + std::to_string(count) + ": must have at most " + std::to_string(limit) +
            (limit == 1 ? " item" : " items"),
        path);
  }
  void Duplicate(const std::string& path, const Json& value) {
    Add("FieldValueDuplicate", "Duplicate value: " + ToText(value), path);
  }
  // An error of the schema as a whole: the server names no field for it.
  void Whole(const std::string& text) { Add("FieldValueInvalid", "Invalid value: \"\": " + text, kNoField); }

  void Add(const Errors& others) {
    for (const FieldError& error : others.list_) Add(error.reason, error.message, error.field);
  }
  bool empty() const { return list_.empty(); }
  std::vector<FieldError> Take() { return std::move(list_); }

 private:
  std::vector<FieldError> list_;
};

// `path_` grows and shrinks with the walk, so that a valid object costs no text.
class Validator {
 public:
  void Validate(const SchemaNode& schema, const Json& value, Errors& errors);
  void ValidateLists(const SchemaNode& schema, const Json& value, Errors& errors);

 private:
  void CheckType(const SchemaNode& schema, const Json& value, Errors& errors);
  void CheckString(const SchemaNode& schema, const std::string& text, Errors& errors);
  void CheckNumber(const SchemaNode& schema, const Json& number, Errors& errors);
  void CheckArray(const SchemaNode& schema, const Json::Array& items, Errors& errors);
  void CheckObject(const SchemaNode& schema, const Json& object, Errors& errors);
  void CheckEnum(const SchemaNode& schema, const Json& value, Errors& errors);
  void CheckAlternatives(const SchemaNode& schema, const Json& value, Errors& errors);
  // How many of `schemas` accept `value`; `failures` gets the errors of the first that does not.
  std::size_t CountValid(const std::vector<SchemaNode::Child>& schemas, const Json& value, Errors& failures);
  void CheckKeys(const SchemaNode& schema, const Json::Array& items, Errors& errors);

  template <typename Check>
  void InField(std::string_view name, Check check) {
    const std::size_t size = path_.size();
    if (size > 0) path_ += '.';
    path_ += name;
    check();
    path_.resize(size);
  }
  template <typename Check>
  void InItem(std::size_t index, Check check) {
    const std::size_t size = path_.size();
    path_ += '[' + std::to_string(index) + ']';
    check();
    path_.resize(size);
  }

  std::string path_;
};

void Validator::Validate(const SchemaNode& schema, const Json& value, Errors& errors) {
  CheckType(schema, value, errors);
  if (!value.is_null()) {
    CheckAlternatives(schema, value, errors);
    if (value.AsString()) CheckString(schema, *value.AsString(), errors);
    if (IsNumber(value)) CheckNumber(schema, value, errors);
    if (value.AsArray()) CheckArray(schema, *value.AsArray(), errors);
  }
  CheckEnum(schema, value, errors);
  if (value.AsObject()) CheckObject(schema, value, errors);
}

void Validator::CheckType(const SchemaNode& schema, const Json& value, Errors& errors) {
  if (schema.types == 0) return;
  if (value.is_null()) {
    if (!schema.is_nullable) errors.WrongType(path_, schema.type_text, "null");
    return;
  }
  const TypeName type = TypeOf(value);
  const bool is_number_type = (schema.types & (kInteger | kNumber)) != 0;
  if ((schema.types & type.bit) != 0) return;
  if (value.AsInt() && (schema.types & kNumber) != 0) return;
  if (value.AsDouble() && (schema.types & kInteger) != 0 && IsWhole(*value.AsDouble())) return;
  const bool is_text_or_list = value.AsString() || value.AsArray();
  if (!schema.format.empty() && !is_text_or_list) {
    if (type.format != schema.format) return errors.WrongType(path_, schema.format, type.format);
  } else if (!schema.format.empty() && !is_number_type) {
    return;  // The format decides.
  }
  errors.WrongType(path_, schema.type_text, type.name);
}

void Validator::CheckString(const SchemaNode& schema, const std::string& text, Errors& errors) {
  if (schema.max_length && CountCharacters(text) > *schema.max_length) {
    errors.Add("FieldValueTooLong",
               "Too long: may not be more than " + std::to_string(*schema.max_length) +
                   (*schema.max_length == 1 ? " byte" : " bytes"),
               path_);
  } else if (schema.min_length && CountCharacters(text) < *schema.min_length) {
    errors.Invalid(path_, text, "should be at least " + std::to_string(*schema.min_length) + " chars long");
  } else if (schema.regex && !std::regex_search(text, *schema.regex)) {
    errors.Invalid(path_, text, "should match '" + schema.pattern + "'");
  }
  if (!schema.format.empty() && !HasFormat(text, schema.format)) errors.WrongType(path_, schema.format, text);
}

void Validator::CheckNumber(const SchemaNode& schema, const Json& number, Errors& errors) {
  if (schema.types == kInteger && !IsInRange(number, schema.format)) {
    errors.Whole(
        "Checked value must be of type integer" +
        (schema.format == "int32" || schema.format == "int64" ? " with format " + schema.format : " (default format)") +
        " in " + path_);
  }
  if (schema.multiple_of && ToDouble(*schema.multiple_of) > 0 &&
      !IsWhole(ToDouble(number) / ToDouble(*schema.multiple_of)))
    errors.Invalid(path_, number, "should be a multiple of " + ToText(*schema.multiple_of));
  if (schema.maximum) {
    const int order = Order(number, *schema.maximum);
    if (order > 0 || (order == 0 && schema.is_maximum_exclusive)) {
      errors.Invalid(path_, number,
                     (schema.is_maximum_exclusive ? "should be less than " : "should be less than or equal to ") +
                         ToText(*schema.maximum));
    }
  }
  if (schema.minimum) {
    const int order = Order(number, *schema.minimum);
    if (order < 0 || (order == 0 && schema.is_minimum_exclusive)) {
      errors.Invalid(path_, number,
                     (schema.is_minimum_exclusive ? "should be greater than " : "should be greater than or equal to ") +
                         ToText(*schema.minimum));
    }
  }
}

void Validator::CheckArray(const SchemaNode& schema, const Json::Array& items, Errors& errors) {
  if (schema.items) {
    for (std::size_t i = 0; i < items.size(); ++i) InItem(i, [&] { Validate(*schema.items, items[i], errors); });
  }
  const auto count = static_cast<std::int64_t>(items.size());
  if (schema.min_items && count < *schema.min_items)
    errors.Invalid(path_, count, "should have at least " + std::to_string(*schema.min_items) + " items");
  if (schema.max_items && count > *schema.max_items) errors.TooMany(path_, count, *schema.max_items);
  if (!schema.has_unique_items) return;
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (std::find(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i), items[i]) ==
        items.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    errors.Invalid(path_, "", "shouldn't contain duplicates");
    return;
  }
}

void Validator::CheckObject(const SchemaNode& schema, const Json& object, Errors& errors) {
  const Json::Object& members = *object.AsObject();
  const auto count = static_cast<std::int64_t>(members.size());
  if (schema.min_properties && count < *schema.min_properties)
    return errors.Invalid(path_, count,
                          "should have at least " + std::to_string(*schema.min_properties) + " properties");
  if (schema.max_properties && count > *schema.max_properties)
    return errors.TooMany(path_, count, *schema.max_properties);
  for (const auto& [name, value] : members) {
    if (const SchemaNode* const field = schema.At(name)) InField(name, [&] { Validate(*field, value, errors); });
  }
  for (const std::string& name : schema.required) {
    if (!object.Find(name)) InField(name, [&] { errors.Add("FieldValueRequired", "Required value", path_); });
  }
}

void Validator::CheckEnum(const SchemaNode& schema, const Json& value, Errors& errors) {
  const std::vector<Json>& allowed = schema.enum_values;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  std::string names;
  for (const Json& each : allowed)
    names += (names.empty() ? "" : ", ") + Quote(each.AsString() ? *each.AsString() : ToText(each));
  errors.Add("FieldValueNotSupported", "Unsupported value: " + ToText(value) + ": supported values: " + names, path_);
}

std::size_t Validator::CountValid(const std::vector<SchemaNode::Child>& schemas, const Json& value, Errors& failures) {
  std::size_t valid = 0;
  for (const SchemaNode::Child& schema : schemas) {
    Errors errors;
    Validate(*schema, value, errors);
    if (errors.empty()) {
      ++valid;
    } else if (failures.empty()) {
      failures = std::move(errors);
    }
  }
  return valid;
}

void Validator::CheckAlternatives(const SchemaNode& schema, const Json& value, Errors& errors) {
  if (!schema.any_of.empty()) {
    Errors failures;
    if (CountValid(schema.any_of, value, failures) == 0) {
      errors.Whole(Quote(path_) + " must validate at least one schema (anyOf)");
      errors.Add(failures);
    }
  }
  if (!schema.one_of.empty()) {
    Errors failures;
    const std::size_t valid = CountValid(schema.one_of, value, failures);
    if (valid != 1) {
      errors.Whole(Quote(path_) + " must validate one and only one schema (oneOf). Found " +
                   (valid == 0 ? "none valid" : std::to_string(valid) + " valid alternatives"));
    }
    if (valid == 0) errors.Add(failures);
  }
  if (!schema.all_of.empty()) {
    std::size_t valid = 0;
    for (const SchemaNode::Child& each : schema.all_of) {
      Errors failures;
      Validate(*each, value, failures);
      valid += failures.empty() ? 1 : 0;
      errors.Add(failures);
    }
    if (valid < schema.all_of.size()) {
      errors.Whole(Quote(path_) + " must validate all the schemas (allOf)" + (valid == 0 ? ". None validated" : ""));
    }
  }
  if (schema.negated) {
    Errors failures;
    Validate(*schema.negated, value, failures);
    if (failures.empty()) errors.Whole(Quote(path_) + " must not validate the schema (not)");
  }
}

void Validator::ValidateLists(const SchemaNode& schema, const Json& value, Errors& errors) {
  if (const Json::Array* const items = value.AsArray()) {
    if (schema.list != StructuralSchema::ListType::kAtomic) CheckKeys(schema, *items, errors);
    if (!schema.items) return;
    for (std::size_t i = 0; i < items->size(); ++i)
      InItem(i, [&] { ValidateLists(*schema.items, (*items)[i], errors); });
  } else if (const Json::Object* const members = value.AsObject()) {
    for (const auto& [name, member] : *members) {
      if (const SchemaNode* const field = schema.Declared(name)) {
        InField(name, [&] { ValidateLists(*field, member, errors); });
      } else if (schema.additional) {
        const std::size_t size = path_.size();
        path_ += "[" + name + "]";  // The server writes this path with brackets, unlike in other checks.
        ValidateLists(*schema.additional, member, errors);
        path_.resize(size);
      }
    }
  }
}

void Validator::CheckKeys(const SchemaNode& schema, const Json::Array& items, Errors& errors) {
  const bool is_map = schema.list == StructuralSchema::ListType::kMap;
  std::vector<Json> seen, reported;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (is_map && !items[i].is_object() && !items[i].is_null()) {
      InItem(i, [&] {
        errors.Add("FieldValueInvalid",
                   "Invalid value: " + ToText(items[i]) + ": must be an object for an array of list-type map", path_);
      });
      return;
    }
    Json key = is_map ? KeysOf(schema, items[i]) : items[i];
    if (std::find(seen.begin(), seen.end(), key) == seen.end()) {
      seen.push_back(std::move(key));
    } else if (std::find(reported.begin(), reported.end(), key) == reported.end()) {
      InItem(i, [&] { errors.Duplicate(path_, key); });
      reported.push_back(std::move(key));
    }
  }
}

}  // namespace

std::vector<FieldError> SchemaNode::Validate(const Json& object) const {
  Errors errors;
  Validator validator;
  validator.Validate(*this, object, errors);
  validator.ValidateLists(*this, object, errors);
  return errors.Take();
}

}  // namespace kube::testing::internal
