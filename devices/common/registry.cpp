#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/collective.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/common/device_spec.h"
#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/registry.h"

namespace headrace {
namespace {

using Devices = std::vector<std::unique_ptr<Device>>;
using Table = std::span<const Backend* const>;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

struct LoadedBackends {
  CpuBackend cpu;
  std::vector<const Backend*> table{&cpu};
  std::vector<Finding> missing;

  LoadedBackends() {
    const auto named = environment("HEADRACE_CUDA_MODULE");
    const BackendModule cuda = load_backend_module("CUDA module", module_candidates("libheadrace_cuda.so", named));
    if (cuda.backend != nullptr) {
      table.push_back(cuda.backend);
    } else {
      missing.push_back(cuda.missing);
    }
  }
};

const LoadedBackends& loaded() {
  static const LoadedBackends backends;
  return backends;
}

const Backend* find_backend(Table table, const std::string& name) {
  const auto found = std::ranges::find_if(table, [&](const Backend* backend) { return backend->name() == name; });
  return found == table.end() ? nullptr : *found;
}

std::string what_there_is(Table table) {
  std::string text;
  for (const Backend* backend : table) {
    for (const DeviceInfo& info : backend->list()) {
      text += fmt::format("{}{} ({}{})", text.empty() ? "there is: " : "; ", info.name, info.description,
                          info.unusable.empty() ? "" : ", which cannot be used");
    }
  }
  return text;
}

[[noreturn]] void refuse_unknown(const std::string& name, Table table) {
  static constexpr std::array kElsewhere{"tpu", "rocm", "hip", "mps", "xpu", "vulkan", "opencl"};
  if (std::ranges::find(kElsewhere, name) != kElsewhere.end()) {
    throw DeviceError(ErrorCode::kUnsupported, "not supported: Headrace runs on CPUs and CUDA GPUs", name,
                      what_there_is(table));
  }
  if (name == "cuda") {
    throw ConfigError("cuda: the CUDA module is not loaded",
                      "`headrace doctor` says why; " + what_there_is(table));
  }
  throw ConfigError(fmt::format("unknown device '{}'", name), what_there_is(table));
}

std::string replica_name(const DeviceSpec& spec, const DeviceSpec::Item& item, int replica) {
  if (spec.backend == "cpu") return fmt::format("cpu:{}", replica);
  const std::string device = fmt::format("{}:{}", spec.backend, item.ordinal);
  return item.local_replicas == 1 ? device : fmt::format("{}/{}", device, replica);
}

void require_usable(const DeviceInfo& info, Table table) {
  if (info.unusable.empty()) return;
  throw DeviceError(ErrorCode::kUnsupported, info.unusable, info.name, what_there_is(table));
}

// Returns the items of the spec, or all devices if it names none.
std::vector<DeviceSpec::Item> resolve(const DeviceSpec& spec, const Backend& backend, Table table) {
  const std::vector<DeviceInfo> present = backend.list();
  if (present.empty()) {
    throw ConfigError(fmt::format("{}: no such device on this machine", spec.backend),
                      "`headrace doctor` says what is missing; " + what_there_is(table));
  }
  std::vector<DeviceSpec::Item> items = spec.items;
  if (items.empty()) {
    for (const DeviceInfo& info : present) items.push_back({.ordinal = info.ordinal, .local_replicas = 1});
  }
  for (const auto& item : items) {
    const auto info = std::ranges::find(present, item.ordinal, &DeviceInfo::ordinal);
    if (info == present.end()) {
      throw ConfigError(fmt::format("there is no device {}:{}", spec.backend, item.ordinal), what_there_is(table));
    }
    require_usable(*info, table);
  }
  return items;
}

Devices open_all(const DeviceSpec& spec, const Backend& backend, Table table) {
  Devices devices;
  for (const auto& item : resolve(spec, backend, table)) {
    for (int replica = 0; replica < item.local_replicas; ++replica) {
      devices.push_back(backend.open(item.ordinal, replica_name(spec, item, replica), item.local_replicas));
    }
  }
  return devices;
}

bool serves(const Devices& devices, DeviceNeed need) {
  return need == DeviceNeed::kMemory ||
         std::ranges::all_of(devices, [](const auto& device) { return device->kernels() != nullptr; });
}

DeviceGroup open_auto(DeviceNeed need, Table table) {
  const Backend* cuda = find_backend(table, "cuda");
  DeviceSpec usable{.backend = "cuda", .items = {}};
  if (cuda != nullptr) {
    for (const DeviceInfo& info : cuda->list()) {
      if (info.unusable.empty()) usable.items.push_back({.ordinal = info.ordinal, .local_replicas = 1});
    }
  }
  if (!usable.items.empty()) {
    Devices devices = open_all(usable, *cuda, table);
    if (serves(devices, need)) return DeviceGroup(std::move(devices));
  }
  return open_devices("cpu", need, table);
}

}  // namespace

const std::vector<const Backend*>& backends() { return loaded().table; }

std::vector<Finding> missing_backends() { return loaded().missing; }

DeviceGroup open_devices(std::string_view spec, DeviceNeed need) { return open_devices(spec, need, backends()); }

DeviceGroup open_devices(std::string_view text, DeviceNeed need, std::span<const Backend* const> table) {
  const auto named = text == "auto" ? environment("HEADRACE_DEVICES") : std::nullopt;
  const DeviceSpec spec = parse_device_spec(named ? *named : text);
  if (spec.backend == "auto") return open_auto(need, table);

  const Backend* backend = find_backend(table, spec.backend);
  if (backend == nullptr) refuse_unknown(spec.backend, table);
  Devices devices = open_all(spec, *backend, table);
  if (!serves(devices, need)) {
    const std::string why = devices.front()->why_no_kernels();
    throw DeviceError(ErrorCode::kUnsupported,
                      fmt::format("the {} backend feeds batches but cannot train here{}{}", spec.backend,
                                  why.empty() ? "" : ": ", why),
                      devices.front()->info().name, "`headrace doctor` says what is missing; or train on `cpu`");
  }
  return DeviceGroup(std::move(devices));
}

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
