#include "headrace/pipeline/engine/run_plan.h"

#include <fmt/format.h>
#include <tbb/info.h>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/counted.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/engine/foreign_state.h"
#include "headrace/pipeline/engine/mixing_part.h"

namespace headrace {
namespace {

// Of lanes and of readers: no machine has use for more, and the system may not give more.
constexpr int kMaxWorkers = 1024;
constexpr int kMaxPrefetch = 1024;

StreamPlan checked_plan(const Dataset& dataset) {
  StreamPlan plan = make_stream_plan(dataset.plan());
  if (!plan.batch)
    throw ConfigError("the plan has no batches", advice("end it with {}", named("Dataset::batch()")));
  return plan;
}

void check_range(const char* option, int value, int min, int max) {
  if (value >= min && value <= max) return;
  throw ConfigError(fmt::format("{}: {} to {} are possible", named(option, std::to_string(value)), min, max));
}

void check_world(const World& world, const DeviceGroup& devices) {
  if (world.total == 0 && world.first == 0) return;
  if (world.first >= 0 && world.total >= devices.size() && world.first <= world.total - devices.size()) return;
  throw ConfigError(fmt::format("replicas {} to {} are not within a world of {}", world.first,
                                static_cast<std::int64_t>(world.first) + devices.size() - 1, world.total),
                    advice("{} is the number of all replicas", named("LoaderOptions::world")));
}

// What takes records by their numbers, or knows how many there are.
void check_streamed(const LoaderOptions& options, const std::string& name) {
  if (options.epochs > 1) {
    throw ConfigError(fmt::format("{}: {} is a stream, which can be read only once",
                                  named("LoaderOptions::epochs", std::to_string(options.epochs)), name),
                      joined({advice("give {}", named("LoaderOptions::epochs", "1")),
                              advice("{} divides a stream into epochs", named("FitOptions::steps_per_epoch"))},
                             "; "));
  }
  if (options.errors.on_error == OnError::kSubstitute) {
    throw ConfigError(fmt::format("bad records of {}, a stream, cannot be substituted by others", name),
                      advice("skip them with {}", named("ErrorPolicy::on_error", "skip")));
  }
}

LoaderOptions checked_options(LoaderOptions options, const StreamPlan& plan, const DeviceGroup& devices) {
  if (devices.size() < 1) throw ConfigError("a loader needs at least one device");
  check_range("LoaderOptions::threads", options.threads, 0, kMaxWorkers);
  check_range("LoaderOptions::reader_threads", options.reader_threads, 0, kMaxWorkers);
  check_range("LoaderOptions::reader_limit", options.reader_limit, 1, kMaxWorkers);
  check_range("LoaderOptions::cpu_budget", options.cpu_budget, 0, std::numeric_limits<int>::max());
  if (options.cpu_budget > 0 && options.threads > options.cpu_budget) {
    throw ConfigError(
        fmt::format("{} is more than {}", named("LoaderOptions::threads", std::to_string(options.threads)),
                    named("LoaderOptions::cpu_budget", std::to_string(options.cpu_budget))),
        "lower the threads, or give 0 to have them chosen");
  }
  if (options.converted != DType::kF32 && options.converted != DType::kBF16) {
    throw ConfigError(fmt::format("images cannot be converted to {}", to_string(options.converted)),
                      advice("{} is float32 or bfloat16", named("LoaderOptions::converted")));
  }
  if (options.prefetch < 0) options.prefetch = plan.prefetch;
  check_range("LoaderOptions::prefetch", options.prefetch, 0, kMaxPrefetch);
  if (plan.source->info().streamed) check_streamed(options, plan.source->info().name);
  check_world(options.world, devices);
  return options;
}

int max_lanes(const LoaderOptions& options) {
  if (options.threads > 0) return options.threads;
  int processors = tbb::info::default_concurrency();
  if (options.arena != nullptr) processors = options.arena->max_concurrency();
  return options.cpu_budget > 0 ? std::min(options.cpu_budget, processors) : processors;
}

int max_readers(const LoaderOptions& options, const StreamPlan& plan) {
  if (plan.source->info().resident || plan.source->info().streamed) return 0;
  return options.reader_threads > 0 ? options.reader_threads : options.reader_limit;
}

// Whether records are used so often that what is learned of them the first time pays for itself.
bool uses_records_often(const StreamPlan& plan, const BatchSchedule& schedule, std::uint64_t epochs) {
  constexpr std::uint64_t kPasses = 3;
  const double examples = static_cast<double>(schedule.batches()) * static_cast<double>(schedule.largest_batch());
  return epochs >= kPasses ||
         examples >= static_cast<double>(kPasses) * static_cast<double>(plan.source->info().records);
}

// The examples that bad records are a share of: an epoch, or some batches of a stream.
std::uint64_t counted_examples(const StreamPlan& plan, const BatchSchedule& schedule) {
  constexpr std::uint64_t kOfAStream = 10'000;
  if (!plan.source->info().streamed) return schedule.examples_per_epoch();
  const auto batch = static_cast<std::uint64_t>(plan.batch->global);
  return std::max<std::uint64_t>(1, kOfAStream / batch) * batch;
}

std::string name_of_counted(const StreamPlan& plan, std::uint64_t examples) {
  const bool streamed = plan.source->info().streamed;
  return fmt::format("{} {}", count_of(examples, "example"), streamed ? "in a row" : "of an epoch");
}

// Of images that the devices keep: they are not sent with every batch.
std::vector<std::size_t> resident_fields(const DeviceSplit& split, const ResidentChoice& residency) {
  std::vector<std::size_t> fields;
  for (const DevicePass& pass : split.passes) {
    if (residency.resident) fields.push_back(pass.field);
  }
  return fields;
}

ReplicaRange range_of(const World& world, int local) {
  return {.first = world.first, .local = local, .world = world.total == 0 ? local : world.total};
}

}  // namespace

RunPlan::RunPlan(const Dataset& dataset, const DeviceGroup& devices, const LoaderOptions& given, Budgets& budgets)
    : plan(checked_plan(dataset)),
      options(checked_options(given, plan, devices)),
      lanes(max_lanes(options)),
      readers(max_readers(options, plan)),
      split(split_for_devices(plan, devices, options.convert)),
      residency(choose_residency(plan, split, devices,
                                 {.residency = options.resident,
                                  .epochs = options.epochs,
                                  .budget_bytes = options.resident_budget_bytes,
                                  .host_budget_bytes = options.memory_budget_bytes})),
      host(host_part(plan, split.passes)),
      schedule(plan, options.seed, options.epochs),
      bad_records_of(counted_examples(plan, schedule)),
      bad_limit(options.errors, bad_records_of, name_of_counted(plan, bad_records_of)),
      filter_failures(FilterFailures::of(plan.index_stages)),
      fingerprint(filter_failures.mixed_into(mix_seed(plan.fingerprint(), options.seed))),
      layout(host.fields, schedule.largest_batch(), range_of(options.world, devices.size()),
             resident_fields(split, residency)),
      program(host),
      copier(filter_failures.empty() ? RowCopier::of(*plan.source, program) : std::nullopt) {
  if (options.start) {
    if (options.start->fingerprint != fingerprint) {
      throw ConfigError("the loader state belongs to another stream: " +
                            describe_difference(plan, options.seed, filter_failures, options.start->fingerprint),
                        "start again, or restore with the plan, the data and the seed it was saved with");
    }
    first = options.start->sequence;
  }
  if (uses_records_often(plan, schedule, options.epochs)) program.keep_jpeg_indexes(budgets.memory);
  for (const PlannedOperation& planned : plan.batch_operations) mixers.emplace_back(planned, plan.fields);
  if (!is_part()) return;
  const std::int64_t examples = schedule.largest_batch();
  layout.guest_rows =
      MixingPart::max_guests(mixers.size(), examples, examples * layout.local_replicas / layout.world_replicas,
                             layout.local_rows * layout.local_replicas);
  if (skips()) {
    throw ConfigError("bad records cannot be skipped by a part of the replicas: the others would not know of it",
                      "substitute them, or serve all replicas by one loader");
  }
}

}  // namespace headrace
