// SPDX-License-Identifier: Apache-2.0
#include "crds/reference_pages.h"

#include <cassert>
#include <filesystem>
#include <string_view>
#include <utility>

#include "crds/types/all_crds.h"

namespace api {
namespace {

using kube::Json;

std::string Text(const Json* value) {
  if (value == nullptr) return {};
  const std::string* text = value->AsString();
  return text != nullptr ? *text : kube::ToText(*value);
}

std::string Text(const Json& object, std::string_view key) { return Text(object.Find(key)); }

std::string Code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

// A cell of a table: its bars are no borders, also in code.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row.append(" ").append(Cell(cell)).append(cell.empty() ? "|" : " |");
  return row + "\n";
}

std::string Plural(const std::string& type) {
  if (type == "boolean" || type == "string" || type == "integer" || type == "number") return type + "s";
  if (type == "time") return "times";
  if (type == "quantity") return "quantities";
  return "objects";
}

bool IsIntOrString(const Json& schema) { return schema.Find("x-kubernetes-int-or-string") != nullptr; }

std::string TypeOf(const Json& schema) {
  if (IsIntOrString(schema)) return schema.Find("pattern") != nullptr ? "quantity" : "integer or string";
  const std::string type = Text(schema, "type");
  if (type == "array") return "list of " + Plural(TypeOf(*schema.Find("items")));
  if (const Json* values = schema.Find("additionalProperties")) return "map of " + Plural(TypeOf(*values));
  if (schema.Find("x-kubernetes-preserve-unknown-fields") != nullptr) return "object, any fields";
  if (Text(schema, "format") == "date-time") return "time";
  return type.empty() ? "any" : type;
}

std::string Range(const Json& schema, std::string_view low, std::string_view high, std::string_view what) {
  const std::string least = Text(schema, low);
  const std::string most = Text(schema, high);
  if (least.empty() && most.empty()) return {};
  if (least == "1" && most.empty() && !what.empty()) return "not empty";
  const std::string unit = what.empty() ? "" : " " + std::string(what);
  if (least.empty()) return "at most " + most + unit;
  if (most.empty()) return "at least " + least + unit;
  return least + " to " + most + unit;
}

std::string Values(const Json& schema) {
  std::string values;
  const Json* list = schema.Find("enum");
  if (list == nullptr) return values;
  for (const Json& value : *list->AsArray()) values.append(values.empty() ? "" : ", ").append(Code(Text(&value)));
  return "one of " + values;
}

// What the API server demands of a value, besides its rules in CEL.
std::string LimitsOf(const Json& schema, bool is_required) {
  std::string limits;
  const auto add = [&](const std::string& limit) {
    if (!limit.empty()) limits.append(limits.empty() ? "" : "; ").append(limit);
  };
  if (is_required) add("**required**");
  add(Values(schema));
  add(Range(schema, "minimum", "maximum", ""));
  add(Range(schema, "minItems", "maxItems", "items"));
  add(Range(schema, "minProperties", "maxProperties", "entries"));
  add(Range(schema, "minLength", "maxLength", "characters"));
  if (const std::string pattern = Text(schema, "pattern"); !pattern.empty() && !IsIntOrString(schema))
    add("pattern " + Code(pattern));
  if (const Json* keys = schema.Find("x-kubernetes-list-map-keys")) {
    add("unique by " + Code(Text(&(*keys->AsArray())[0])));
  } else if (Text(schema, "x-kubernetes-list-type") == "set") {
    add("no value twice");
  }
  for (const std::string_view key : {"items", "additionalProperties"}) {
    const Json* inner = schema.Find(key);
    const std::string of_each = inner != nullptr && !IsIntOrString(*inner) ? LimitsOf(*inner, false) : "";
    if (!of_each.empty()) add("each: " + of_each);
  }
  return limits;
}

bool IsRequired(const Json& object, const std::string& name) {
  const Json* required = object.Find("required");
  if (required == nullptr) return false;
  for (const Json& one : *required->AsArray()) {
    if (Text(&one) == name) return true;
  }
  return false;
}

// "- MESSAGE: `CEL`" for each rule of the value at `path`.
std::string RulesOf(const Json& schema, const std::string& path) {
  std::string lines;
  const Json* rules = schema.Find("x-kubernetes-validations");
  if (rules == nullptr) return lines;
  for (const Json& rule : *rules->AsArray()) {
    lines.append("- ").append(path.empty() ? "" : Code(path) + ": ").append(Text(rule, "message"));
    lines.append("  \n  ").append(Code(Text(rule, "rule"))).append("\n");
  }
  return lines;
}

// What holds the fields below `schema`, and the path to them: a list's items are "path[]", a map's values "path.*".
std::pair<const Json*, std::string> Inner(const Json& schema, const std::string& path) {
  if (const Json* items = schema.Find("items")) return Inner(*items, path + "[]");
  if (const Json* values = schema.Find("additionalProperties")) return Inner(*values, path + ".*");
  return {&schema, path};
}

std::string FieldRow(const Json& object, const std::string& name, const Json& field, const std::string& path) {
  return Row({Code(path), TypeOf(field), Code(Text(field, "default")), LimitsOf(field, IsRequired(object, name)),
              Text(field, "description")});
}

std::string FieldTable(const std::string& rows) {
  return Row({"field", "type", "default", "limits", "what"}) + "|---|---|---|---|---|\n" + rows;
}

// The table of one object's own fields, then those of the objects below it.
std::string Section(const Json& object, const std::string& path, std::string_view doc) {
  const Json* properties = object.Find("properties");
  if (properties == nullptr) return {};
  std::string rows;
  std::string rules = RulesOf(object, path);
  std::string below;
  for (const auto& [name, field] : *properties->AsObject()) {
    const std::string field_path = path + "." + name;
    const auto [inner, inner_path] = Inner(field, field_path);
    rows += FieldRow(object, name, field, field_path);
    // The rules of an object with fields stand in its own section.
    if (inner == &field && inner->Find("properties") != nullptr) {
      below += Section(field, field_path, Text(field, "description"));
      continue;
    }
    rules += RulesOf(field, field_path);
    below += Section(*inner, inner_path, Text(field, "description"));
  }
  std::string section = "\n## " + path + "\n\n";
  if (!doc.empty()) section.append(doc).append("\n\n");
  section += FieldTable(rows);
  if (!rules.empty()) section.append("\nThe API server also checks (CEL):\n\n").append(rules);
  return section + below;
}

std::string Names(const Json& list) {
  std::string names;
  for (const Json& name : *list.AsArray()) names.append(names.empty() ? "" : ", ").append(Code(Text(&name)));
  return names;
}

struct Page {
  std::string kind, groups, names, doc, columns, fields, schema_rules, sections;
};

void AddGroup(Page& page, const Json& crd) {
  const Json& spec = *crd.Find("spec");
  const Json& names = *spec.Find("names");
  const std::string version = Text((*spec.Find("versions")->AsArray())[0], "name");
  const std::string crd_name = Text(crd.At({"metadata", "name"}));
  const std::string file = std::filesystem::path("../../crds/generated/" + CrdFile(crd_name)).lexically_normal();
  page.groups +=
      Row({"API", Code(Text(spec, "group") + "/" + version) + ", in the CRD [" + crd_name + "](" + file + ")"});
  if (const Json* short_names = names.Find("shortNames")) page.names = ", or " + Names(*short_names);
}

Page MakePage(const Json& crd) {
  const Json& spec = *crd.Find("spec");
  const Json& version = (*spec.Find("versions")->AsArray())[0];
  const Json& schema = *version.At({"schema", "openAPIV3Schema"});
  Page page;
  page.kind = Text(spec.At({"names", "kind"}));
  page.doc = Text(schema, "description");
  for (const Json& column : *version.Find("additionalPrinterColumns")->AsArray()) {
    const std::string wide = Text(column, "priority").empty() ? "" : " (`-o wide`)";
    page.columns += Row({Text(column, "name") + wide, Code(Text(column, "jsonPath")), Text(column, "description")});
  }
  page.schema_rules = RulesOf(schema, "");
  std::string rows;
  for (const char* part : {"spec", "status"}) {
    const Json& field = *schema.At({"properties", part});
    rows += FieldRow(schema, part, field, part);
    page.sections += Section(field, part, "");
  }
  page.fields = FieldTable(rows);
  return page;
}

std::string Markdown(const Page& page, const Json& crd) {
  const Json& spec = *crd.Find("spec");
  std::string text = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- generated by crdgen; do not edit -->\n# ";
  text.append(page.kind).append("\n\n").append(page.doc).append("\n\n|  |  |\n|---|---|\n").append(page.groups);
  text += Row({"in kubectl", Code(Text(spec.At({"names", "plural"}))) + page.names});
  text += Row({"scope", Text(spec, "scope") == "Cluster" ? "of the whole cluster" : "of a namespace"});
  const Json& subresources = *(*spec.Find("versions")->AsArray())[0].Find("subresources");
  if (const Json* scale = subresources.Find("scale")) {
    text += Row({"`kubectl scale` sets", Code(Text(*scale, "specReplicasPath"))});
  }
  text += "\n" + page.fields + "\n`[]` in a path stands for each item of a list, `*` for each key of a map.\n";
  text += "\nWhat the reasons of its conditions and events mean: [operations.md](../operations.md#" +
          Text(spec.At({"names", "singular"})) + ").\n";
  if (!page.schema_rules.empty()) text += "\nOf the whole object the API server checks (CEL):\n\n" + page.schema_rules;
  return text + page.sections + "\n## Columns of kubectl get\n\n" + Row({"column", "field", "what"}) +
         "|---|---|---|\n" + page.columns;
}

}  // namespace

std::map<std::string, std::string> ReferencePages(const std::vector<kube::CrdInfo>& crds) {
  std::map<std::string, std::pair<Page, Json>> pages;
  std::string index;
  for (const kube::CrdInfo& info : crds) {
    Json crd = kube::MakeCrd(info);
    Page page = MakePage(crd);
    const auto [at, is_new] = pages.try_emplace(page.kind, page, crd);
    assert((is_new || at->second.first.sections == page.sections) && "kinds of one name have the same fields");
    AddGroup(at->second.first, crd);
    if (is_new) index += Row({"[" + page.kind + "](" + page.kind + ".md)", page.doc});
  }
  std::map<std::string, std::string> files;
  for (const auto& [kind, page] : pages) files[kind + ".md"] = Markdown(page.first, page.second);
  files["README.md"] =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- generated by crdgen; do not edit -->\n# Reference\n\n"
      "Every field of every kind, from the same tables as the CRDs. `kubectl explain KIND.spec --recursive` shows them "
      "in a cluster.\n\n|  |  |\n|---|---|\n" +
      index;
  return files;
}

}  // namespace api
