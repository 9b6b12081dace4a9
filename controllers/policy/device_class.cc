// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/device_class.h"

#include <algorithm>
#include <charconv>

namespace grus {
namespace {

constexpr char kTypeAttribute[] = "type", kWholeGpuType[] = "gpu";

// Takes tokens and the space behind them. False: another token is there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { Skip(); }

  bool IsAtEnd() const { return rest_.empty(); }
  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    Drop(token.size());
    return true;
  }
  bool TakeName(std::string& name) {
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_part);
    if (end == rest_.begin() || (rest_.front() >= '0' && rest_.front() <= '9')) return false;
    name.assign(rest_.begin(), end);
    Drop(name.size());
    return true;
  }
  // Texts with escapes are not understood.
  bool TakeText(std::string& text) {
    if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\'')) return false;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos || rest_.substr(0, end).find('\\') != std::string_view::npos) return false;
    text = rest_.substr(1, end - 1);
    Drop(end + 1);
    return true;
  }
  bool TakeLiteral(kube::DeviceAttribute& value) {
    std::string text;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (TakeText(text)) {
      value.string = text;
    } else if (error == std::errc()) {
      value.integer = number;
      Drop(static_cast<std::size_t>(end - rest_.data()));
    } else {
      if (!TakeName(text) || (text != "true" && text != "false")) return false;
      value.boolean = text == "true";
    }
    return true;
  }

 private:
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
    std::string field;
    if (!scanner.Take("device") || !scanner.Take(".") || !scanner.TakeName(field)) return false;
    const bool is_attribute = field == "attributes" && scanner.Take("[") && scanner.TakeText(term.domain) &&
                              scanner.Take("]") && scanner.Take(".") && scanner.TakeName(term.name);
    if (field != "driver" && !is_attribute) return false;
    if (!scanner.Take("==") || !scanner.TakeLiteral(term.value)) return false;
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
  return std::ranges::all_of(terms_, [&](const Term& term) {
    if (term.name.empty()) return term.value.string == driver;
    return std::ranges::any_of(device.attributes, [&](const auto& attribute) {
      const std::string_view key = attribute.first.view();
      const std::size_t slash = key.find('/');
      const bool is_own = slash == std::string_view::npos;  // Of the driver's domain.
      return (is_own ? driver : key.substr(0, slash)) == term.domain &&
             (is_own ? key : key.substr(slash + 1)) == term.name && attribute.second == term.value;
    });
  });
}

bool DeviceFilter::IsOfWholeGpus() const {
  const auto has = [this](std::string_view domain, std::string_view name, std::string_view value) {
    return std::ranges::any_of(terms_, [&](const Term& term) {
      return term.domain == domain && term.name == name && term.value.string == value;
    });
  };
  return has("", "", kNvidiaGpuDriver) && has(kNvidiaGpuDriver, kTypeAttribute, kWholeGpuType);
}

std::string DriverOf(const kube::DeviceClassSpec& spec) {
  for (const kube::DeviceSelector& selector : spec.selectors) {
    const std::string_view expression = selector.cel ? selector.cel->expression.view() : std::string_view();
    // An alternative could select the devices of others as well.
    if (expression.find_first_of("|?") != std::string_view::npos) continue;
    DeviceFilter filter;
    filter.ReadExpression(expression);  // The terms before the first that is not understood.
    for (const DeviceFilter::Term& term : filter.terms_) {
      if (term.name.empty()) return term.value.string.str();
    }
  }
  return {};
}

bool IsWholeGpu(std::string_view driver, const kube::Device& device) {
  if (driver != kNvidiaGpuDriver || device.allow_multiple_allocations) return false;
  return std::ranges::any_of(device.attributes, [](const auto& attribute) {
    const std::string_view key = attribute.first.view();
    const bool is_type = key == kTypeAttribute || key == std::string(kNvidiaGpuDriver) + "/" + kTypeAttribute;
    return is_type && attribute.second.string == kWholeGpuType;
  });
}

bool IsCountable(const kube::ResourceSliceSpec& slice, const kube::Device& device) {
  return !slice.node_name.empty() && device.consumes_counters.empty() && !device.allow_multiple_allocations;
}

bool IsUsable(const kube::Device& device) {
  return std::ranges::none_of(device.taints, [](const kube::DeviceTaint& taint) {
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
