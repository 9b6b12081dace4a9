// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/spec_edits.h"

#include <algorithm>
#include <stdexcept>

#include "tests/campaign/spec_values.h"

namespace grus::testing {
namespace {

constexpr std::int64_t kInt32Max = 2147483647, kInt64Max = 9223372036854775807;
// The clusters of the campaign have 4, 8 or 16 GPUs.
constexpr std::int64_t kUsualSizes[] = {2, 8, 17};
// A larger maximum is not tried: a cluster with 10,000 pods of one job takes minutes.
constexpr std::int64_t kMostThere = 1000;
constexpr std::size_t kLongText = 300;  // For strings without maxLength.

std::vector<std::string> Steps(std::string_view path) {
  std::vector<std::string> steps;
  while (true) {
    const std::size_t dot = path.find('.');
    steps.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return steps;
    path.remove_prefix(dot + 1);
  }
}

const Json* At(const Json& object, std::string_view path) {
  const Json* at = &object;
  for (const std::string& step : Steps(path)) {
    if (at != nullptr) at = at->Find(step);
  }
  return at;
}

std::string Text(const Json& object, std::string_view name) {
  const Json* value = object.Find(name);
  return value && value->AsString() ? *value->AsString() : std::string();
}

std::optional<std::int64_t> Int(const Json& object, std::string_view name) {
  const Json* value = object.Find(name);
  return value && value->AsInt() ? std::optional(*value->AsInt()) : std::nullopt;
}

class Walk {
 public:
  explicit Walk(const Json& object) : object_(object) {}

  void Field(const std::string& path, const Json& schema, bool is_required) {
    if (!is_required) Add(path, std::nullopt);
    const std::string type = Text(schema, "type");
    const bool is_free = schema.Find("x-kubernetes-preserve-unknown-fields") != nullptr;
    if (const Json* values = schema.Find("enum")) {
      for (const Json& value : *values->AsArray()) Add(path, value);
      Add(path, "NotAmongThem");
    } else if (type == "boolean") {
      Add(path, true);
      Add(path, false);
    } else if (type == "integer") {
      Integers(path, schema);
    } else if (type == "string") {
      Strings(path, schema);
    } else if (type == "array") {
      Arrays(path, *schema.Find("items"));
    } else if (const Json* properties = schema.Find("properties")) {
      for (const auto& [name, field] : *properties->AsObject())
        Field(path + "." + name, field, IsRequired(schema, name));
    } else if (is_free || type == "object") {
      for (Json& value : FreeObjects(path)) Add(path, std::move(value));
    }
  }

  std::vector<SpecEdit> edits;

 private:
  static bool IsRequired(const Json& schema, const std::string& name) {
    const Json* required = schema.Find("required");
    return required && std::count(required->AsArray()->begin(), required->AsArray()->end(), Json(name)) > 0;
  }

  void Add(const std::string& path, std::optional<Json> value) {
    const Json* now = At(object_, path);
    if (value ? now != nullptr && *now == *value : now == nullptr) return;
    SpecEdit edit{path, std::move(value)};
    if (std::find(edits.begin(), edits.end(), edit) == edits.end()) edits.push_back(std::move(edit));
  }

  void Integers(const std::string& path, const Json& schema) {
    const std::int64_t least = Int(schema, "minimum").value_or(0);
    for (std::int64_t value : {least - 1, least, least + 1}) Add(path, value);
    if (const auto most = Int(schema, "maximum")) {
      if (*most <= kMostThere) Add(path, *most);
      Add(path, *most + 1);
    } else {
      Add(path, Text(schema, "format") == "int64" ? kInt64Max : kInt32Max);
    }
    if (const auto usual = Int(schema, "default")) {
      for (std::int64_t value : {*usual - 1, *usual, *usual + 1}) Add(path, value);
    }
    for (std::int64_t value : kUsualSizes) Add(path, value);
    // Around what stands beside it.
    const Json* siblings = At(object_, path.substr(0, path.rfind('.')));
    if (siblings == nullptr || siblings->AsObject() == nullptr) return;
    for (const auto& [name, sibling] : *siblings->AsObject()) {
      if (sibling.AsInt() == nullptr) continue;
      for (std::int64_t value : {*sibling.AsInt() - 1, *sibling.AsInt(), *sibling.AsInt() + 1}) Add(path, value);
    }
  }

  void Strings(const std::string& path, const Json& schema) {
    for (const char* value :
         {"other", "registry.test/other:2", "", "ünïcödé-🚀", "a\"b'c$(d)`e`\\", "two words\nand lines"}) {
      Add(path, value);
    }
    const auto most = Int(schema, "maxLength");
    const std::size_t length = most ? static_cast<std::size_t>(*most) : kLongText;
    Add(path, std::string(length, 'x'));
    if (most) Add(path, std::string(length + 1, 'x'));
  }

  void Arrays(const std::string& path, const Json& items) {
    const Json* now = At(object_, path);
    const Json list = now && now->AsArray() ? *now : Json::MakeArray();
    Add(path, Json::MakeArray());
    if (!list.AsArray()->empty()) {
      Json fewer = list;
      fewer.AsArray()->pop_back();
      Add(path, std::move(fewer));
    }
    std::vector<Json> more;
    if (Text(items, "type") == "string") more = {"--more", "", "ünïcödé 'quoted' \"twice\""};
    else if (Text(items, "type") == "integer") more = {0, 7};
    else more = FreeObjects(path);
    for (Json& item : more) {
      Json longer = list;
      longer.Append(std::move(item));
      Add(path, std::move(longer));
    }
  }

  const Json& object_;
};

// One side of a comparison; nullopt: it is not there.
std::optional<std::int64_t> Operand(std::string_view text, const Json& self) {
  if (!text.starts_with("self.")) {
    const kube::Result<Json> number = kube::ParseJson(text);
    if (!number || !number->AsInt())
      throw std::invalid_argument("no path and no number in a rule: " + std::string(text));
    return *number->AsInt();
  }
  const Json* value = At(self, text.substr(5));
  return value && value->AsInt() ? std::optional(*value->AsInt()) : std::nullopt;
}

bool TermHolds(std::string_view term, const Json& self) {
  constexpr std::string_view kNot = "!has(self.";
  if (term.starts_with(kNot) && term.ends_with(")")) {
    return At(self, term.substr(kNot.size(), term.size() - kNot.size() - 1)) == nullptr;
  }
  for (const std::string_view op : {" <= ", " >= "}) {
    const std::size_t at = term.find(op);
    if (at == std::string_view::npos) continue;
    const auto a = Operand(term.substr(0, at), self), b = Operand(term.substr(at + op.size()), self);
    return a && b && (op == " <= " ? *a <= *b : *a >= *b);
  }
  throw std::invalid_argument("a rule of a shape that BrokenRule() does not know: " + std::string(term));
}

bool Holds(std::string_view rule, const Json& self) {
  for (std::size_t end; !rule.empty(); rule.remove_prefix(std::min(rule.size(), end + 4))) {
    end = std::min(rule.find(" || "), rule.size());
    if (TermHolds(rule.substr(0, end), self)) return true;
  }
  return false;
}

std::string BrokenBelow(const Json& schema, const Json& self) {
  if (const Json* rules = schema.Find("x-kubernetes-validations")) {
    for (const Json& rule : *rules->AsArray()) {
      if (!Holds(Text(rule, "rule"), self)) return Text(rule, "message");
    }
  }
  const Json* properties = schema.Find("properties");
  if (properties == nullptr) return {};
  for (const auto& [name, field] : *properties->AsObject()) {
    const Json* value = self.Find(name);
    if (value == nullptr) continue;
    if (std::string broken = BrokenBelow(field, *value); !broken.empty()) return broken;
  }
  return {};
}

}  // namespace

std::vector<SpecEdit> EditsOf(const Json& schema, const Json& object) {
  Walk walk(object);
  const Json* fields = schema.At({"properties", "spec", "properties"});
  walk.Field("spec",
             Json::MakeObject({{"properties", *fields}, {"required", *schema.At({"properties", "spec", "required"})}}),
             true);
  return std::move(walk.edits);
}

Json Edited(Json object, const SpecEdit& edit) {
  const std::vector<std::string> steps = Steps(edit.path);
  Json* at = &object;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!edit.value && at->Find(steps[i]) == nullptr) return object;
    at = &(*at)[steps[i]];
  }
  if (edit.value) (*at)[steps.back()] = *edit.value;
  else at->Erase(steps.back());
  return object;
}

std::string BrokenRule(const Json& schema, const Json& object) {
  const Json *fields = schema.At({"properties", "spec"}), *spec = object.Find("spec");
  return fields && spec ? BrokenBelow(*fields, *spec) : std::string();
}

std::string ToText(const std::vector<SpecEdit>& edits) {
  std::string text;
  for (const SpecEdit& edit : edits) {
    text += (text.empty() ? "" : " ") + edit.path + "=" + (edit.value ? kube::ToText(*edit.value) : "");
  }
  return text;
}

kube::Result<std::vector<SpecEdit>> ParseEdits(std::string_view text) {
  std::vector<SpecEdit> edits;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(" spec."), text.size()), equals = text.find('=');
    if (!text.starts_with("spec.") || equals >= end) {
      return kube::Error(kube::ErrorCode::kInvalidArgument,
                         "an edit is spec.PATH=JSON, not \"" + std::string(text) + "\"");
    }
    SpecEdit edit{std::string(text.substr(0, equals)), std::nullopt};
    if (const std::string_view value = text.substr(equals + 1, end - equals - 1); !value.empty()) {
      kube::Result<Json> json = kube::ParseJson(value);
      if (!json) return std::move(json).error().with(edit.path);
      edit.value = *std::move(json);
    }
    edits.push_back(std::move(edit));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return edits;
}

}  // namespace grus::testing
