#include <fmt/format.h>

#include "headrace/devices/common/device_spec.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/test_devices.h"
#include "headrace/tests/support/twin_kernels.h"

namespace headrace::test {
namespace {

std::string variable() {
  const char* value = std::getenv("HEADRACE_TEST_DEVICES");
  return value == nullptr || *value == '\0' ? "cpu" : value;
}

bool pretends(const std::string& backend) { return backend == "discrete" || backend == "twin"; }

// With at least one item.
DeviceSpec parse(const std::string& text) {
  const std::string backend = text.substr(0, text.find(':'));
  // Kinds that only tests have are counted as the CPU's replicas are.
  DeviceSpec spec = parse_device_spec(pretends(backend) ? "cpu" + text.substr(backend.size()) : text);
  spec.backend = backend;
  if (backend == "auto") {
    throw ConfigError("HEADRACE_TEST_DEVICES is 'auto'", "name a kind, as in cpu:2, cuda:0x2, discrete:2, twin");
  }
  if (spec.items.empty()) spec.items.push_back({});
  return spec;
}

// As open_devices() understands it.
std::string with_replicas(const DeviceSpec& spec, int replicas) {
  if (spec.backend == "cpu") return fmt::format("cpu:{}", replicas);
  const auto named = static_cast<int>(spec.items.size());
  if (replicas > named || named == 1) {
    return fmt::format("{}:{}x{}", spec.backend, spec.items.front().ordinal, replicas);
  }
  std::string text = spec.backend;
  for (int i = 0; i < replicas; ++i) {
    text += fmt::format("{}{}", i == 0 ? ':' : ',', spec.items[static_cast<std::size_t>(i)].ordinal);
  }
  return text;
}

[[noreturn]] void skip_test(const std::string& why) {
  [&] { GTEST_SKIP() << why; }();
  // googletest takes this exception as the end of a test that has been reported already.
  throw testing::AssertionException({testing::TestPartResult::kSkip, __FILE__, __LINE__, why.c_str()});
}

}  // namespace

DeviceGroup devices_of_kind(const std::string& kind, int replicas, DeviceNeed need) {
  const DeviceSpec spec = parse(kind);
  if (spec.backend == "discrete") return devices_of<DiscreteDevice>(replicas);
  if (spec.backend == "twin") return devices_of<TwinDevice>(replicas);
  if (spec.backend == "cuda") {
    static const std::string why = why_no_gpu();
    if (!why.empty()) skip_test("HEADRACE_TEST_DEVICES asks for a GPU, but " + why);
  }
  return open_devices(with_replicas(spec, replicas), need);
}

DeviceGroup test_devices(int replicas, DeviceNeed need) { return devices_of_kind(test_kind(), replicas, need); }

int test_replicas() {
  int replicas = 0;
  for (const DeviceSpec::Item& item : parse(variable()).items) replicas += item.local_replicas;
  return replicas;
}

std::string test_kind() {
  const DeviceSpec spec = parse(variable());
  if (spec.backend == "cpu" || pretends(spec.backend)) return spec.backend;
  std::string kind = spec.backend;
  for (const DeviceSpec::Item& item : spec.items)
    kind += fmt::format("{}{}", kind == spec.backend ? ':' : ',', item.ordinal);
  return kind;
}

DeviceGroup own_memory_devices(int replicas, const std::string& otherwise, DeviceNeed need) {
  const std::string kind = test_kind();
  return devices_of_kind(kind == "cpu" ? otherwise : kind, replicas, need);
}

bool on_gpu() { return test_kind().starts_with("cuda"); }

bool sums_by_shape() { return on_gpu() || !has_avx512(); }

double slack() { return on_gpu() ? 4 : 1; }

std::string why_no_gpu() {
  for (const Finding& missing : missing_backends()) {
    if (missing.name == "CUDA module") return "no CUDA module: " + missing.hint;
  }
  for (const Backend* backend : backends()) {
    if (backend->name() == "cuda" && backend->list().empty()) return "the CUDA module finds no GPU";
  }
  return {};
}

}  // namespace headrace::test
