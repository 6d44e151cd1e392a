#include "headrace/devices/collective.h"

#include <algorithm>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/registry.h"

namespace headrace {
namespace {

std::string_view name_of(DeviceKind kind) { return kind == DeviceKind::kCpu ? "cpu" : "cuda"; }

}  // namespace

std::unique_ptr<Collective> create_collective(DeviceGroup& devices) {
  return create_collective(devices, backends());
}

std::unique_ptr<Collective> create_collective(DeviceGroup& devices, std::span<const Backend* const> table) {
  return backend_of(devices, table).create_collective(devices);
}

const Backend& backend_of(const DeviceGroup& devices, std::span<const Backend* const> table) {
  if (devices.size() == 0) throw ConfigError("a collective needs at least one device");
  const DeviceKind kind = devices[0].info().kind;
  for (int replica = 1; replica < devices.size(); ++replica) {
    if (devices[replica].info().kind == kind) continue;
    throw ConfigError("cannot sum over devices of several kinds: " + devices.to_string(),
                      "train on CPU replicas, as in cpu:2, or on GPUs, as in cuda:0,1");
  }
  const auto found =
      std::ranges::find_if(table, [&](const Backend* backend) { return backend->name() == name_of(kind); });
  if (found == table.end()) {
    throw DeviceError(ErrorCode::kUnsupported, "no backend sums over it", devices[0].info().name,
                      "`headrace doctor` says what is missing");
  }
  return **found;
}

}  // namespace headrace
