// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/crd.h"

#include <gtest/gtest.h>

#include "clientlib/model/condition.h"
#include "clientlib/model/openapi_schema.h"

namespace kube {
namespace {

enum class Mode { kUnset, kAuto, kOff };
std::span<const std::string_view> EnumNames(Mode) {
  static constexpr std::string_view kNames[] = {"", "Auto", "Off"};
  return kNames;
}

struct GadgetSpec {
  std::string image;
  std::optional<std::int32_t> size;
  Mode mode = Mode::kUnset;
  Json pod_template, volumes, anything;
  Quantity memory;
  IntOrString port;
  StringMap labels;
  std::vector<std::string> names;
  Time until;
  Json all;
  static std::span<const FieldInfo> Fields() {
    using T = GadgetSpec;
    static constexpr CelRule kCel[] = {{"self <= 8", "size must be at most 8"}};
    static constexpr CelRule kNameCel[] = {{"self != 'a'", "a is taken"}};
    static constexpr std::string_view kImages[] = {"a", "b"};
    static constexpr FieldInfo kFields[] = {
        Field<&T::image>("image", {.doc = "What runs.",
                                   .required = true,
                                   .min_length = 1,
                                   .max_length = 9,
                                   .pattern = "^[a-z]*$",
                                   .enum_values = kImages}),
        Field<&T::size>("size", {.nullable = true, .minimum = 0, .maximum = 10, .default_json = "1", .cel = kCel}),
        Field<&T::mode>("mode", {.default_json = "\"Auto\""}),
        Field<&T::pod_template>("template"),
        Field<&T::volumes>("volumes", {.json_type = "array"}),
        Field<&T::anything>("anything", {.json_type = "any"}),
        Field<&T::memory>("memory"),
        Field<&T::port>("port"),
        Field<&T::labels>("labels", {.max_length = 7, .max_items = 4}),
        Field<&T::names>("names", {.min_items = 1, .max_items = 5, .list_type = "set", .item_cel = kNameCel}),
        Field<&T::until>("until"),
        Field<&T::all>("until", {.read_only = true}),
    };
    return kFields;
  }
};

struct GadgetStatus {
  std::int64_t replicas = 0;
  std::vector<Condition> conditions;
  static std::span<const FieldInfo> Fields() {
    using T = GadgetStatus;
    static constexpr FieldInfo kFields[] = {
        Field<&T::replicas>("replicas"),
        Field<&T::conditions>("conditions", {.list_type = "map", .list_map_key = "type"}),
    };
    return kFields;
  }
};

struct Gadget : Object {
  GadgetSpec spec;
  GadgetStatus status;
  static const Kind& ResourceKind() {
    static constexpr FieldInfo kFields[] = {
        Field<&Gadget::spec>("spec", {.required = true}),
        Field<&Gadget::status>("status"),
    };
    static const Kind kKind = MakeKind<Gadget>(
        {.group = "example.io", .version = "v1", .kind = "Gadget", .plural = "gadgets", .fields = kFields});
    return kKind;
  }
};

TEST(OpenApiSchema, EachRuleHasItsKeyword) {
  const Json schema = SchemaOf(GadgetSpec::Fields());
  const std::pair<const char*, const char*> kFields[] = {
      {"image",
       R"({"description":"What runs.","type":"string","minLength":1,"maxLength":9,"pattern":"^[a-z]*$","enum":["a","b"]})"},
      {"size", R"({"type":"integer","format":"int32","nullable":true,"minimum":0,"maximum":10,"default":1,)"
               R"("x-kubernetes-validations":[{"rule":"self <= 8","message":"size must be at most 8"}]})"},
      {"mode", R"({"type":"string","enum":["Auto","Off"],"default":"Auto"})"},
      {"template", R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})"},
      {"volumes", R"({"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}})"},
      {"anything", R"({"x-kubernetes-preserve-unknown-fields":true})"},
      {"port", R"({"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true})"},
      {"labels", R"({"type":"object","additionalProperties":{"type":"string","maxLength":7},"maxProperties":4})"},
      {"names", R"({"type":"array","items":{"type":"string","x-kubernetes-validations":[{"rule":"self != 'a'",)"
                R"("message":"a is taken"}]},"minItems":1,"maxItems":5,"x-kubernetes-list-type":"set"})"},
      {"until", R"({"type":"string","format":"date-time"})"},
  };
  for (const auto& [name, text] : kFields) {
    ASSERT_NE(schema.At({"properties", name}), nullptr) << name;
    EXPECT_EQ(ToText(*schema.At({"properties", name})), text);
  }
  EXPECT_EQ(ToText(*schema.Find("required")), R"(["image"])");
  EXPECT_NE(schema.At({"properties", "memory", "pattern"}), nullptr);
  EXPECT_EQ(schema.Find("properties")->AsObject()->size(), 11u);
}

TEST(MakeCrd, DescribesTheKindCompletely) {
  const CrdInfo info{.kind = &Gadget::ResourceKind(),
                     .short_names = {"gd"},
                     .categories = {"grus"},
                     .doc = "A gadget.",
                     .scale = ScalePaths{".spec.size", ".status.replicas", ".status.selector"},
                     .printer_columns = {{"Mode", "string", ".spec.mode", "How.", 1}},
                     .selectable_fields = {".spec.mode"},
                     .cel = {{"self.metadata.name.size() <= 44", "name is too long"}},
                     .is_deprecated = true,
                     .deprecation_warning = "use v2"};
  const Json crd = MakeCrd(info);
  EXPECT_EQ(*crd.At({"metadata", "name"})->AsString(), "gadgets.example.io");
  EXPECT_EQ(ToText(*crd.At({"spec", "names"})),
            R"({"kind":"Gadget","listKind":"GadgetList","plural":"gadgets","singular":"gadget","shortNames":["gd"],)"
            R"("categories":["grus"]})");
  EXPECT_EQ(*crd.At({"spec", "scope"})->AsString(), "Namespaced");
  ASSERT_EQ(crd.At({"spec", "versions"})->AsArray()->size(), 1u);
  const Json& version = crd.At({"spec", "versions"})->AsArray()->at(0);
  EXPECT_EQ(ToText(*version.Find("subresources")),
            R"({"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.replicas",)"
            R"("labelSelectorPath":".status.selector"}})");
  EXPECT_EQ(ToText(*version.Find("additionalPrinterColumns")),
            R"([{"name":"Mode","type":"string","jsonPath":".spec.mode","description":"How.","priority":1}])");
  EXPECT_EQ(ToText(*version.Find("selectableFields")), R"([{"jsonPath":".spec.mode"}])");
  EXPECT_EQ(*version.Find("deprecationWarning")->AsString(), "use v2");
  EXPECT_EQ(*version.Find("storage")->AsBool(), true);
  const Json& schema = *version.At({"schema", "openAPIV3Schema"});
  EXPECT_EQ(*schema.Find("description")->AsString(), "A gadget.");
  EXPECT_NE(schema.Find("x-kubernetes-validations"), nullptr);
  EXPECT_EQ(ToText(*schema.At({"properties", "metadata"})), R"({"type":"object"})");
}

TEST(MakeCrd, ARuleAboutTheNameNamesItsField) {
  const Json crd = MakeCrd({.kind = &Gadget::ResourceKind(),
                            .cel = {{"size(self.metadata.name) <= 44", "metadata.name must have at most 44 characters"},
                                    {"has(self.spec)", "spec is missing"}}});
  const Json& schema = *crd.At({"spec", "versions"})->AsArray()->at(0).At({"schema", "openAPIV3Schema"});
  const Json::Array& rules = *schema.Find("x-kubernetes-validations")->AsArray();
  EXPECT_EQ(*rules[0].Find("fieldPath"), Json(".metadata.name"));
  EXPECT_EQ(rules[1].Find("fieldPath"), nullptr);
  EXPECT_EQ(ToText(*schema.At({"properties", "metadata"})),
            R"({"type":"object","properties":{"name":{"type":"string"}}})");
}

TEST(MakeCrd, F4ListsThatSeveralManagersWriteHaveAKey) {
  const Json crd = MakeCrd({.kind = &Gadget::ResourceKind()});
  const Json& version = crd.At({"spec", "versions"})->AsArray()->at(0);
  const Json& conditions =
      *version.At({"schema", "openAPIV3Schema", "properties", "status", "properties", "conditions"});
  EXPECT_EQ(*conditions.Find("x-kubernetes-list-type"), Json("map"));
  EXPECT_EQ(ToText(*conditions.Find("x-kubernetes-list-map-keys")), R"(["type"])");
}

TEST(MakeCrd, OnlyOneVersionIsStored) {
  CrdInfo info{.kind = &Gadget::ResourceKind()};
  info.more_versions = {{.kind = &Gadget::ResourceKind(), .is_served = false}};
  const Json crd = MakeCrd(info);
  const Json::Array& versions = *crd.At({"spec", "versions"})->AsArray();
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(*versions[0].Find("storage")->AsBool(), true);
  EXPECT_EQ(*versions[1].Find("storage")->AsBool(), false);
  EXPECT_EQ(*versions[1].Find("served")->AsBool(), false);
}

}  // namespace
}  // namespace kube
