// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/model/json_tokens.h"

namespace kube {
namespace {

using Type = JsonToken::Type;

// Of a field that is kept as Json. With the levels of the struct around it, it stays below the 100 of JsonLimits: what
// was read can be written and parsed again.
constexpr int kMaxJsonFieldDepth = 80;

// What is read may take so many times its text in memory, and so many bytes more, whatever it holds: nobody can fill
// the memory with "[1,1,1" or "[{},{},{}". Lists of short environment variables take six times their text. A list, map
// or part that would take more is left empty, so that nobody can hide the rest of an object behind it. Strings count
// apart: they are always read, and take one and a half times their text at most.
constexpr std::size_t kMostTimesText = 8, kSpareBytes = 16384;
constexpr std::size_t kTimesText = 7;                 // Without the strings of fields that have a type.
constexpr std::size_t kAllocation = 16;               // Of the allocator, for each block.
constexpr std::size_t kKeyInPlace = 7, kKeyHead = 8;  // Bytes of a CompactString.

struct Sizes {
  std::size_t as_json = 0, as_text = 0;  // Bytes: at most as a Json, and at least of its text.
};

Sizes SizeOf(const JsonToken& token) {
  Sizes sizes;
  std::size_t keys = 0;
  for (const JsonToken* at = &token; at != token.next(); at = at->type >= Type::kArray ? at->first() : at->next()) {
    sizes.as_json += sizeof(Json);
    sizes.as_text += 2;  // "1,", "[]", the quotes: at least.
    if (at->type == Type::kString) {
      sizes.as_text += at->size + 1UL;
      if (at->size > kKeyInPlace) sizes.as_json += at->size + kKeyHead + kAllocation;
    } else if (at->type >= Type::kArray && at->count > 0) {
      sizes.as_json += kAllocation;
      if (at->type == Type::kObject) keys += at->count;
    }
  }
  sizes.as_json -= keys * (sizeof(Json) - sizeof(CompactString));
  return sizes;
}

// A walk over the tokens of one value. What went wrong and where: the path grows from its end while the calls return.
struct Problem {
  explicit Problem(const JsonToken& token) : root(&token) {}

  const JsonToken* root;            // Null once its text is counted, which most values are too small for.
  std::size_t bytes = kSpareBytes;  // That may still be taken.
  std::string path;
  std::string what;

  void Prefix(std::string_view step) {
    std::string longer(step);
    if (!path.empty() && path[0] != '[') longer.push_back('.');
    path = std::move(longer.append(path));
  }
  void PrefixIndex(std::string_view index) { Prefix(std::string(1, '[').append(index).append("]")); }

  // False if `more` bytes are too many.
  bool Take(std::size_t more) {
    if (more > bytes && root != nullptr) bytes += SizeOf(*std::exchange(root, nullptr)).as_text * kTimesText;
    if (more > bytes) return false;
    bytes -= more;
    return true;
  }
  // Of a list, map or part with a type, which may hold strings besides.
  bool TakeTyped(std::size_t more) { return Take(more + more / 12); }
};

bool ReadFields(std::span<const FieldInfo> fields, const JsonToken& token, void* target, Problem& problem);

std::string_view Describe(const JsonToken& token) {
  switch (token.type) {
    case Type::kNull: return "null";
    case Type::kBool: return "a boolean";
    case Type::kInt: return "an integer";
    case Type::kDouble: return "a number with a fraction or out of range";
    case Type::kString: return "a string";
    case Type::kArray: return "a list";
    case Type::kObject: return "an object";
  }
  return "something else";
}

bool Unexpected(std::string_view expected, const JsonToken& token, Problem& problem) {
  problem.what = "expected " + std::string(expected) + ", found " + std::string(Describe(token));
  return false;
}

bool ReadInt32(const JsonToken& token, std::int32_t& value, Problem& problem) {
  if (token.type != Type::kInt) return Unexpected("an integer", token, problem);
  if (token.integer < std::numeric_limits<std::int32_t>::min() ||
      token.integer > std::numeric_limits<std::int32_t>::max()) {
    problem.what = std::to_string(token.integer) + " does not fit 32 bits";
    return false;
  }
  value = static_cast<std::int32_t>(token.integer);
  return true;
}

template <typename T>
bool Take(Result<T> parsed, T& value, Problem& problem) {
  if (!parsed) {
    problem.what = parsed.error().message();
    return false;
  }
  value = *std::move(parsed);
  return true;
}

bool ReadTime(const JsonToken& token, Time& value, Problem& problem) {
  if (token.type != Type::kString) return Unexpected("a time", token, problem);
  return Take(ParseTime(token.string()), value, problem);
}

bool ReadQuantity(const JsonToken& token, Quantity& value, Problem& problem) {
  if (token.type == Type::kString) return Take(ParseQuantity(token.string()), value, problem);
  if (token.type == Type::kInt) {
    value = Quantity(token.integer);
    return true;
  }
  if (token.type == Type::kDouble) return Take(ParseQuantity(ToText(Json(token.number))), value, problem);
  return Unexpected("a quantity", token, problem);
}

bool ReadIntOrString(const JsonToken& token, IntOrString& value, Problem& problem) {
  if (token.type == Type::kString) {
    value.value = std::string(token.string());
    return true;
  }
  if (token.type != Type::kInt) return Unexpected("an integer or a string", token, problem);
  return ReadInt32(token, value.value.emplace<std::int32_t>(), problem);
}

bool ReadEnum(const TypeOps& type, const JsonToken& token, void* target, Problem& problem) {
  if (token.type != Type::kString) return Unexpected("a string", token, problem);
  const std::span<const std::string_view> names = type.enum_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == token.string()) {
      type.set_enum(target, i);
      return true;
    }
  }
  problem.what = std::string(1, '"').append(token.string().substr(0, 64)).append("\" is none of");
  for (const std::string_view name : names) {
    if (!name.empty()) problem.what.append(" ").append(name);
  }
  return false;
}

bool ReadValue(const TypeOps& type, const JsonToken& token, void* target, Problem& problem);

std::size_t MostAsJson(const Sizes& sizes) { return kMostTimesText * sizes.as_text + kSpareBytes / 4; }

// What a field kept as Json holds instead of so much.
std::string WhyLeftOut(const Sizes& sizes) {
  return "too many small values: " + std::to_string(sizes.as_text / 1024) + " KiB of text would take " +
         std::to_string(sizes.as_json / 1024) + " KiB of memory";
}

bool ReadList(const TypeOps& type, const JsonToken& token, void* target, Problem& problem) {
  if (token.type != Type::kArray) return Unexpected("a list", token, problem);
  if (type.element->shape == Shape::kJson) {
    if (const Sizes sizes = SizeOf(token); sizes.as_json > MostAsJson(sizes)) {
      type.resize(target, 1);
      *static_cast<Json*>(type.at(target, 0)) = Json(WhyLeftOut(sizes));
      return true;
    }
  }
  const std::size_t item_bytes = type.element->shape == Shape::kJson ? 0 : type.item_bytes;  // ReadJson() takes all.
  if (!problem.TakeTyped(kAllocation + token.count * item_bytes)) return true;
  type.resize(target, token.count);
  const JsonToken* item = token.first();
  for (std::size_t i = 0; i < token.count; ++i, item = item->next()) {
    if (item->is_null() || ReadValue(*type.element, *item, type.at(target, i), problem)) continue;
    problem.PrefixIndex(std::to_string(i));
    return false;
  }
  if (type.drop != nullptr) type.drop(target);
  return true;
}

// The keys of an object in order, and whether they stand so already, as Go writes them; then `keys` stays empty.
bool AreInOrder(const JsonToken& object, std::vector<const JsonToken*>& keys) {
  const JsonToken* last = nullptr;
  bool are_in_order = true;
  for (const JsonToken* key = object.first(); key != object.next(); key = (key + 1)->next()) {
    are_in_order &= last == nullptr || last->string() < key->string();
    last = key;
  }
  if (are_in_order) return true;
  keys.reserve(object.count);
  for (const JsonToken* key = object.first(); key != object.next(); key = (key + 1)->next()) keys.push_back(key);
  std::ranges::sort(keys, {}, &JsonToken::string);
  return false;
}

bool ReadMap(const TypeOps& type, const JsonToken& token, void* target, Problem& problem) {
  if (token.type != Type::kObject) return Unexpected("an object", token, problem);
  if (!problem.TakeTyped(kAllocation + token.count * type.item_bytes)) return true;
  type.resize(target, token.count);
  const JsonToken* last = nullptr;
  const auto read = [&](const JsonToken* key) {
    const JsonToken& value = *(key + 1);
    if (value.is_null()) return true;
    const bool is_twice = last != nullptr && last->string() == key->string();
    last = key;
    if (is_twice) problem.what = "given twice";
    if (!is_twice && ReadValue(*type.element, value, type.append(target, key->string()), problem)) {
      return true;
    }
    problem.PrefixIndex(key->string().substr(0, 64));
    return false;
  };
  std::vector<const JsonToken*> sorted;
  if (!AreInOrder(token, sorted)) return std::ranges::all_of(sorted, read);
  for (const JsonToken* key = token.first(); key != token.next(); key = (key + 1)->next()) {
    if (!read(key)) return false;
  }
  return true;
}

bool ReadJson(const JsonToken& token, Json& value, Problem& problem) {
  const Sizes sizes = SizeOf(token);
  if (sizes.as_json > MostAsJson(sizes) || !problem.Take(sizes.as_json)) {
    value = Json(WhyLeftOut(sizes));
    return true;
  }
  Status read = internal::JsonFromToken(token, value, kMaxJsonFieldDepth);
  if (!read) problem.what = read.error().message();
  return read.ok();
}

// REQUIRES: `token` is not null.
bool ReadValue(const TypeOps& type, const JsonToken& token, void* target, Problem& problem) {
  switch (type.shape) {
    case Shape::kBool:
      if (token.type != Type::kBool) return Unexpected("a boolean", token, problem);
      *static_cast<bool*>(target) = token.integer != 0;
      return true;
    case Shape::kInt32: return ReadInt32(token, *static_cast<std::int32_t*>(target), problem);
    case Shape::kInt64:
      if (token.type != Type::kInt) return Unexpected("an integer", token, problem);
      *static_cast<std::int64_t*>(target) = token.integer;
      return true;
    case Shape::kDouble:
      if (token.type != Type::kInt && token.type != Type::kDouble) return Unexpected("a number", token, problem);
      *static_cast<double*>(target) = token.type == Type::kInt ? static_cast<double>(token.integer) : token.number;
      return true;
    case Shape::kString:
      if (token.type != Type::kString) return Unexpected("a string", token, problem);
      *static_cast<std::string*>(target) = token.string();
      return true;
    case Shape::kCompactString:
      if (token.type != Type::kString) return Unexpected("a string", token, problem);
      *static_cast<CompactString*>(target) = CompactString::Shared(token.string());
      return true;
    case Shape::kTime: return ReadTime(token, *static_cast<Time*>(target), problem);
    case Shape::kMicroTime: return ReadTime(token, *static_cast<MicroTime*>(target), problem);
    case Shape::kQuantity: return ReadQuantity(token, *static_cast<Quantity*>(target), problem);
    case Shape::kIntOrString: return ReadIntOrString(token, *static_cast<IntOrString*>(target), problem);
    case Shape::kJson: return ReadJson(token, *static_cast<Json*>(target), problem);
    case Shape::kEnum: return ReadEnum(type, token, target, problem);
    case Shape::kStruct: return ReadFields(type.fields(), token, target, problem);
    case Shape::kOptional:
      if (type.item_bytes > 0 && !problem.TakeTyped(type.item_bytes + kAllocation)) return true;
      return ReadValue(*type.element, token, type.emplace(target), problem);
    case Shape::kList: return ReadList(type, token, target, problem);
    case Shape::kMap: return ReadMap(type, token, target, problem);
  }
  return false;
}

// The first row named `name`, searched from `hint` on: both sides usually follow the order of the Go struct.
std::size_t FindField(std::span<const FieldInfo> fields, std::string_view name, std::size_t hint) {
  for (std::size_t i = hint; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
  }
  for (std::size_t i = 0; i < hint; ++i) {
    if (fields[i].name == name) return i;
  }
  return fields.size();
}

bool ReadFields(std::span<const FieldInfo> fields, const JsonToken& token, void* target, Problem& problem) {
  if (token.type != Type::kObject) return Unexpected("an object", token, problem);
  std::uint64_t seen = 0;  // Bit i: row i. Tables are shorter than 64.
  std::size_t hint = 0;
  const JsonToken* const end = token.next();
  for (const JsonToken* key = token.first(); key != end; key = (key + 1)->next()) {
    const JsonToken& value = *(key + 1);
    const std::string_view name = key->string();
    std::size_t i = FindField(fields, name, hint);
    if (i == fields.size()) continue;
    if (i < 64 && (seen >> i & 1) != 0) {
      problem.what = "given twice";
      problem.Prefix(name);
      return false;
    }
    if (i < 64) seen |= std::uint64_t{1} << i;
    for (; i < fields.size() && fields[i].name == name; ++i) {
      if (value.is_null() || ReadValue(*fields[i].type, value, fields[i].get(target), problem)) continue;
      problem.Prefix(name);
      return false;
    }
    hint = i;
  }
  return true;
}

}  // namespace

Status ReadStruct(std::span<const FieldInfo> fields, const JsonToken& token, void* target) {
  Problem problem(token);
  if (ReadFields(fields, token, target, problem)) return {};
  return Error(ErrorCode::kDecode, problem.path.empty() ? std::move(problem.what) : problem.path + ": " + problem.what);
}

Status ReadText(std::span<const FieldInfo> fields, std::string_view text, void* target, const JsonLimits& limits) {
  Result<const JsonToken*> root = ThreadJsonTokens().Parse(text, limits, JsonTokens::Filter::kNone);
  if (!root) return std::move(root).error();
  return ReadStruct(fields, **root, target);
}

}  // namespace kube
