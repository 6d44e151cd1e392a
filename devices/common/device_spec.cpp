#include "headrace/devices/common/device_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr int kMaxNumber = 1023;
constexpr const char* kForms = "as in auto, cpu, cpu:4, cuda, cuda:0,2, cuda:0x4";

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || value < 0 || value > kMaxNumber) return std::nullopt;
  return value;
}

[[noreturn]] void malformed(std::string_view spec, std::string_view part) {
  if (part == spec) throw ConfigError(fmt::format("cannot read the devices '{}'", spec), kForms);
  throw ConfigError(fmt::format("cannot read '{}' in the devices '{}'", part, spec), kForms);
}

DeviceSpec::Item parse_item(std::string_view spec, std::string_view part) {
  const std::size_t x = part.find('x');
  const auto ordinal = number(part.substr(0, x));
  const auto local_replicas = x == std::string_view::npos ? 1 : number(part.substr(x + 1));
  if (!ordinal || !local_replicas || *local_replicas == 0) malformed(spec, part);
  return {.ordinal = *ordinal, .local_replicas = *local_replicas};
}

void add_item(DeviceSpec& spec, DeviceSpec::Item item) {
  if (std::ranges::any_of(spec.items, [&](const auto& other) { return other.ordinal == item.ordinal; })) {
    throw ConfigError(fmt::format("device {}:{} is named twice", spec.backend, item.ordinal),
                      fmt::format("{}:{}x2 makes two logical replicas on one device", spec.backend, item.ordinal));
  }
  spec.items.push_back(item);
}

}  // namespace

DeviceSpec parse_device_spec(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  DeviceSpec result{.backend = std::string(spec.substr(0, colon)), .items = {}};
  if (result.backend.empty()) malformed(spec, spec);
  if (colon == std::string_view::npos) return result;

  std::string_view rest = spec.substr(colon + 1);
  if (result.backend == "auto") malformed(spec, spec);
  if (result.backend == "cpu") {
    const auto local_replicas = number(rest);
    if (!local_replicas || *local_replicas == 0) malformed(spec, spec);
    result.items.push_back({.ordinal = 0, .local_replicas = *local_replicas});
    return result;
  }
  for (;;) {
    const std::size_t comma = rest.find(',');
    add_item(result, parse_item(spec, rest.substr(0, comma)));
    if (comma == std::string_view::npos) return result;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace headrace
