#include "headrace/pipeline/plan/device_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operations/machinery/definition.h"

namespace headrace {
namespace {

// What is done to a field after it was decoded and after the cache; an operation may need what came before it, so
// only the last ones can be taken away.
std::vector<FieldOperation> operations_on(const StreamPlan& plan, std::size_t index) {
  const std::string& name = plan.fields[index].name;
  Fields fields = plan.source->info().fields;
  std::vector<FieldOperation> operations;
  for (std::size_t i = 0; i < plan.sample_stages.size(); ++i) {
    const auto* planned = std::get_if<PlannedOperation>(&plan.sample_stages[i]);
    if (planned == nullptr) {
      for (Field& field : fields) field = decoded_field(field, std::get<DecodeStage>(plan.sample_stages[i]));
      continue;
    }
    const OperationDefinition& operation = planned->operation.definition();
    if (operation.spans_fields()) {  // what it sees is the host's
      if (operation.touches(name)) operations.clear();
    } else if (operation.touches(name) && i >= plan.cached_stages) {
      operations.push_back({.stage = i, .planned = *planned, .before = fields[find_field(fields, name)]});
    }
    fields = operation.apply_to_sample(fields);
  }
  return operations;
}

// The longest end of a field's operations that a device can do.
std::optional<DevicePass> pass_on(const StreamPlan& plan, std::size_t index) {
  const std::vector<FieldOperation> operations = operations_on(plan, index);
  for (std::size_t first = 0; first < operations.size(); ++first) {
    if (auto pass = make_device_pass(std::span(operations).subspan(first), plan.fields[index])) {
      pass->field = index;
      return pass;
    }
  }
  return std::nullopt;
}

// Why these devices are sent finished batches; empty where they need not be.
std::string obstacle_to_split(const DeviceGroup& devices) {
  for (int r = 0; r < devices.size(); ++r) {
    const std::string& name = devices[r].info().name;
    if (devices[r].info().host_memory) return fmt::format("{} reads batches where the host wrote them", name);
    if (devices[r].input_kernels() == nullptr) return fmt::format("{} has no kernel for it", name);
  }
  return {};
}

std::string why_none(const StreamPlan& plan) {
  if (!plan.batch_operations.empty()) {
    return fmt::format("{} mixes finished examples on the host",
                       describe(plan.batch_operations.front().operation));
  }
  return "no image of uint8 becomes a larger one of float32 by the last operations on it";
}

std::string why(const StreamPlan& plan, const std::vector<DevicePass>& passes) {
  const DevicePass& first = passes.front();
  const std::string& name = plan.fields[first.field].name;
  const Field& result = plan.fields[first.field];
  return fmt::format("'{}' crosses the bus as {} {} instead of {} {}", name, to_string(first.input.dtype),
                     first.input.shape.to_string(), to_string(result.dtype), result.shape.to_string());
}

}  // namespace

DeviceSplit split_for_devices(const StreamPlan& plan, const DeviceGroup& devices, ConvertAt at) {
  DeviceSplit split;
  if (at == ConvertAt::kHost) return {.passes = {}, .reason = "as the options say"};
  split.reason = obstacle_to_split(devices);
  if (split.reason.empty() && plan.batch_operations.empty()) {
    for (std::size_t i = 0; i < plan.fields.size(); ++i) {
      if (auto pass = pass_on(plan, i)) split.passes.push_back(std::move(*pass));
    }
  }
  if (split.reason.empty()) split.reason = split.passes.empty() ? why_none(plan) : why(plan, split.passes);
  if (at == ConvertAt::kDevice && split.passes.empty()) {
    throw ConfigError("the batches cannot be converted on the device: " + split.reason,
                      advice("leave it at {}", named("LoaderOptions::convert", "auto")));
  }
  return split;
}

StreamPlan host_part(const StreamPlan& plan, const std::vector<DevicePass>& passes) {
  StreamPlan host = plan;
  std::vector<std::size_t> taken;
  for (const DevicePass& pass : passes) {
    taken.insert(taken.end(), pass.stages.begin(), pass.stages.end());
    host.fields[pass.field] = pass.input;
  }
  std::ranges::sort(taken, std::greater<>());
  for (const std::size_t stage : taken) {
    host.sample_stages.erase(host.sample_stages.begin() + static_cast<std::ptrdiff_t>(stage));
  }
  return host;
}

std::string explain_plan(const StreamPlan& plan, const DeviceSplit& split) {
  std::vector<std::size_t> taken;
  for (const DevicePass& pass : split.passes) taken.insert(taken.end(), pass.stages.begin(), pass.stages.end());
  std::string text = explain_plan(plan, taken);
  if (!plan.batch) return text;
  return text + fmt::format("conversion on the {}: {}\n", taken.empty() ? "host" : "device", split.reason);
}

}  // namespace headrace
