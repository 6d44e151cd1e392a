#include "headrace/pipeline/plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/pixel_step.h"
#include "headrace/pipeline/plan/sample_program.h"

namespace headrace {
namespace {

// Returns the operations on a field after decoding and after the cache. An operation may depend on those before
// it, so only the last ones can be moved.
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
    } else if (operation.touches(name) && i >= plan.cached_stages()) {
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

// Returns why these devices must receive finished batches; empty if they need not.
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

constexpr std::uint64_t kFreeShare = 4;  // a quarter of what is free: the trainer needs room, too

// Returns the first operation left to the host, after the cache, that may give another sample every time.
const Operation* changing_on_host(const StreamPlan& host) {
  for (std::size_t i = host.cached_stages(); i < host.sample_stages.size(); ++i) {
    const auto* planned = std::get_if<PlannedOperation>(&host.sample_stages[i]);
    if (planned == nullptr) continue;
    if (planned->operation.definition().may_change()) return &planned->operation;
  }
  return nullptr;
}

std::uint64_t sample_bytes(const std::vector<DevicePass>& passes) {
  std::uint64_t bytes = 0;
  for (const DevicePass& pass : passes) bytes += static_cast<std::uint64_t>(pass.input.shape.elements());
  return bytes;
}

// Returns the host bytes of a kept record: its place, and the fields that the devices do not convert.
std::uint64_t host_sample_bytes(const StreamPlan& plan, const std::vector<DevicePass>& passes) {
  std::uint64_t bytes = sizeof(std::int32_t);
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    if (std::ranges::find(passes, i, &DevicePass::field) != passes.end()) continue;
    bytes += static_cast<std::uint64_t>(plan.fields[i].shape.elements()) * size_of(plan.fields[i].dtype);
  }
  return bytes;
}

// Returns the bytes that each replica may take.
std::uint64_t room(const DeviceGroup& devices, const ResidentWish& wish) {
  if (wish.budget_bytes > 0) return wish.budget_bytes;
  return devices.free_bytes_each() / (wish.residency == Residency::kAlways ? 1 : kFreeShare);
}

std::string obstacle_to_residence(const StreamPlan& plan, const DeviceSplit& split, const ResidentWish& wish) {
  if (wish.residency == Residency::kNever) return "as the options say";
  if (split.passes.empty()) return split.reason;
  if (!plan.parts.empty()) return "they are made of datasets that were processed before they were combined";
  const StreamPlan host = host_part(plan, split.passes);
  if (const Operation* operation = changing_on_host(host)) {
    return fmt::format("{} is done on the host and may give another sample every time", describe(*operation));
  }
  const std::uint64_t records = plan.source->info().records;
  if (records == 0) return "there are no records";
  if (records > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    return fmt::format("{} records are more than can be numbered", records);
  }
  const bool seen_again = wish.epochs > 1 || plan.examples_per_epoch() > records;
  if (wish.residency == Residency::kAuto && !seen_again) return "nothing is seen again in a run of one epoch";
  return {};
}

}  // namespace

namespace {

// Returns whether the host's last step on the field decodes the image and resizes a part of it.
bool ends_with_decoding(const StreamPlan& host, std::size_t index) {
  if (host.cached_stages() > 0 || !host.parts.empty() || host.fields[index].shape.is_dynamic()) return false;
  const std::string& name = host.fields[index].name;
  const Fields& fields = host.source->info().fields;
  const auto field = std::ranges::find(fields, name, &Field::name);
  if (field == fields.end() || field->encoding != Encoding::kImage) return false;
  for (const SampleStage& stage : host.sample_stages) {  // all fields' steps are cut there
    const auto* planned = std::get_if<PlannedOperation>(&stage);
    if (planned != nullptr && planned->operation.definition().spans_fields()) return false;
  }
  Field encoded = *field;
  std::vector<NamedStep> steps = compile_steps(encoded, host.sample_stages, false);
  merge_mirroring(steps, encoded.shape);
  return !steps.empty() && steps.back().step->encoded_images() != nullptr;
}

std::string obstacle_to_decoding(const StreamPlan& plan, const ResidentChoice& residency,
                                 const DeviceGroup& devices) {
  if (residency.resident) return "the samples are kept on the device";
  if (plan.buckets != nullptr || !plan.ragged.empty()) return "the batches differ in shape";
  if (!plan.batch_operations.empty()) return why_none(plan);
  if (std::string obstacle = obstacle_to_split(devices); !obstacle.empty()) return obstacle;
  for (int r = 0; r < devices.size(); ++r) {
    if (devices[r].input_kernels()->decodes_jpegs()) continue;
    return fmt::format("{} has no kernel for it", devices[r].info().name);
  }
  if (devices.free_bytes_each() < 2 * kDecodingBytes) {
    return fmt::format("a device has less than {} MB left", 2 * kDecodingBytes >> 20);
  }
  return {};
}

}  // namespace

DecodeChoice choose_decoding(const StreamPlan& plan, const DeviceSplit& split, const ResidentChoice& residency,
                             const DeviceGroup& devices, ConvertAt at, bool pinned_is_limited) {
  DecodeChoice choice;
  if (at == ConvertAt::kHost) {
    choice.reason = "as the options say";
    return choice;
  }
  choice.reason = obstacle_to_decoding(plan, residency, devices);
  if (choice.reason.empty() && at == ConvertAt::kAuto && pinned_is_limited) {
    choice.reason = fmt::format("it takes more of {}", named("LoaderOptions::pinned_budget_bytes"));
  }
  if (choice.reason.empty()) {
    const StreamPlan host = host_part(plan, split.passes);
    for (std::size_t i = 0; i < host.fields.size() && !choice.field; ++i) {
      if (ends_with_decoding(host, i)) choice.field = i;
    }
    if (choice.field) choice.pixels = host.fields[*choice.field].shape;
    choice.reason =
        choice.field
            ? fmt::format("JPEGs of '{}', as windows of their bits", plan.fields[*choice.field].name)
            : "no image is decoded and resized last on the host, by a plan of operations on one field each";
  }
  if (at == ConvertAt::kDevice && !choice.field) {
    throw ConfigError("JPEGs cannot be decoded on the device: " + choice.reason,
                      advice("leave it at {}", named("LoaderOptions::decode", "auto")));
  }
  return choice;
}

std::string explain_decoding(const DecodeChoice& choice, ConvertAt at) {
  const char* const where = !choice.field ? "host" : at == ConvertAt::kDevice ? "device" : "host and device";
  return fmt::format("decoding on the {}: {}\n", where, choice.reason);
}

DeviceSplit split_for_devices(const StreamPlan& plan, const DeviceGroup& devices, ConvertAt at) {
  DeviceSplit split;
  if (at == ConvertAt::kHost) return {.passes = {}, .reason = "as the options say"};
  split.reason =
      plan.buckets != nullptr || !plan.ragged.empty() ? "the batches differ in shape" : obstacle_to_split(devices);
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

ResidentChoice choose_residency(const StreamPlan& plan, const DeviceSplit& split, const DeviceGroup& devices,
                                const ResidentWish& wish) {
  ResidentChoice choice{.records = plan.source->info().records};
  choice.reason = obstacle_to_residence(plan, split, wish);
  if (choice.reason.empty()) {
    choice.bytes = checked_product({choice.records, sample_bytes(split.passes)}).value_or(kMaxSize);
    choice.host_bytes =
        checked_product({choice.records, host_sample_bytes(plan, split.passes)}).value_or(kMaxSize);
    const std::uint64_t most = room(devices, wish);
    const bool host_holds = wish.host_budget_bytes == 0 || choice.host_bytes <= wish.host_budget_bytes / 2;
    choice.resident = choice.bytes <= most && host_holds;
    choice.reason = fmt::format("{} records take {} bytes of each device, {} are {}", choice.records, choice.bytes,
                                most, wish.budget_bytes > 0 ? "its budget" : "there for them");
    if (!host_holds) {
      choice.reason =
          fmt::format("{} bytes would stay on the host, more than half of {}", choice.host_bytes,
                      named("LoaderOptions::memory_budget_bytes", std::to_string(wish.host_budget_bytes)));
    }
  }
  if (wish.residency == Residency::kAlways && !choice.resident) {
    throw ConfigError("the samples cannot be kept on the device: " + choice.reason,
                      advice("leave it at {}", named("LoaderOptions::resident", "auto")));
  }
  return choice;
}

std::string explain_residency(const ResidentChoice& choice) {
  return fmt::format("samples {} on the device: {}\n", choice.resident ? "kept" : "not kept", choice.reason);
}

}  // namespace headrace
