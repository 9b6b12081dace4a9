// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/device_class.h"

#include <algorithm>
#include <charconv>

namespace grus {
namespace {

// Takes tokens from the front; what does not fit stays.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { Skip(); }

  bool IsAtEnd() const { return rest_.empty(); }
  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    Drop(token.size());
    return true;
  }
  std::optional<std::string> TakeName() {
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_part);
    if (end == rest_.begin() || (rest_.front() >= '0' && rest_.front() <= '9')) return std::nullopt;
    return Cut(static_cast<std::size_t>(end - rest_.begin()));
  }
  // Without escapes.
  std::optional<std::string> TakeText() {
    if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\'')) return std::nullopt;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos || rest_.substr(0, end).find('\\') != std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(1);
    std::string text = Cut(end - 1);
    Drop(1);
    return text;
  }
  std::optional<kube::DeviceAttribute> TakeLiteral() {
    kube::DeviceAttribute value;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (auto text = TakeText()) {
      value.string = *text;
    } else if (error == std::errc()) {
      value.integer = number;
      Drop(static_cast<std::size_t>(end - rest_.data()));
    } else {
      const std::optional<std::string> name = TakeName();
      if (name != "true" && name != "false") return std::nullopt;
      value.boolean = name == "true";
    }
    return value;
  }

 private:
  std::string Cut(std::size_t size) {
    std::string token(rest_.substr(0, size));
    Drop(size);
    return token;
  }
  void Drop(std::size_t size) {
    rest_.remove_prefix(size);
    Skip();
  }
  void Skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  std::string_view rest_;
};

}  // namespace

bool DeviceFilter::ReadExpression(std::string_view expression) {
  Scanner scanner(expression);
  do {
    Term term;
    if (!scanner.Take("device") || !scanner.Take(".")) return false;
    const std::optional<std::string> field = scanner.TakeName();
    if (field == "attributes") {
      if (!scanner.Take("[")) return false;
      std::optional<std::string> domain = scanner.TakeText();
      if (!domain || !scanner.Take("]") || !scanner.Take(".")) return false;
      std::optional<std::string> name = scanner.TakeName();
      if (!name) return false;
      term.domain = *std::move(domain);
      term.name = *std::move(name);
    } else if (field != "driver") {
      return false;
    }
    if (!scanner.Take("==")) return false;
    std::optional<kube::DeviceAttribute> value = scanner.TakeLiteral();
    if (!value) return false;
    term.value = *std::move(value);
    terms_.push_back(std::move(term));
  } while (scanner.Take("&&"));
  return scanner.IsAtEnd();
}

std::optional<DeviceFilter> DeviceFilter::Read(const kube::DeviceClassSpec& spec) {
  DeviceFilter filter;
  for (const kube::DeviceSelector& selector : spec.selectors) {
    if (!selector.cel || !filter.ReadExpression(selector.cel->expression.view())) return std::nullopt;
  }
  return filter;
}

bool DeviceFilter::Selects(std::string_view driver, const kube::Device& device) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    if (term.name.empty()) return term.value.string == driver;
    return std::any_of(device.attributes.begin(), device.attributes.end(), [&](const auto& attribute) {
      const std::string_view key = attribute.first.view();
      const std::size_t slash = key.find('/');
      const bool is_own = slash == std::string_view::npos;  // Of the driver's domain.
      return (is_own ? driver : key.substr(0, slash)) == term.domain &&
             (is_own ? key : key.substr(slash + 1)) == term.name && attribute.second == term.value;
    });
  });
}

bool IsCountable(const kube::ResourceSliceSpec& slice, const kube::Device& device) {
  return !slice.node_name.empty() && device.consumes_counters.empty() && !device.allow_multiple_allocations;
}

bool IsUsable(const kube::Device& device) {
  return std::none_of(device.taints.begin(), device.taints.end(), [](const kube::DeviceTaint& taint) {
    return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
  });
}

bool IsPlain(const kube::ExactDeviceRequest& request) {
  return (request.allocation_mode.empty() || request.allocation_mode == "ExactCount") && !request.admin_access &&
         request.selectors.empty() && request.tolerations.empty() && !request.capacity;
}

std::string_view ClassOf(const kube::DeviceAllocation& allocation, const kube::ResourceClaimSpec& claim) {
  const std::string_view path = allocation.request.view();
  const std::size_t slash = path.find('/');
  const std::string_view sub_name = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  for (const kube::DeviceRequest& request : claim.devices.requests) {
    if (request.name != path.substr(0, slash)) continue;
    if (request.exactly) return request.exactly->device_class_name.view();
    for (const kube::DeviceSubRequest& sub : request.first_available) {
      if (sub.name == sub_name) return sub.device_class_name.view();
    }
  }
  return {};
}

}  // namespace grus
