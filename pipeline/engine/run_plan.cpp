#include "headrace/pipeline/engine/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/info.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/engine/mixing_part.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/ragged_batch.h"

namespace headrace {
namespace {

// Describes how the stream of a state differs from one of these stages and this seed: "its seed was 3, here it is
// 4".
std::string describe_difference(const std::vector<StageIdentity>& here, std::uint64_t seed,
                                const LoaderState& of) {
  std::vector<std::string> differences;
  if (of.seed != seed) differences.push_back(fmt::format("its seed was {}, here it is {}", of.seed, seed));
  const auto same = [](const StageIdentity& stage, std::uint32_t hash) { return stage.hash == hash; };
  const auto first = std::ranges::mismatch(here, of.stages, same);
  const auto stage = first.in1;
  const auto hash = first.in2;
  const auto left_here = here.end() - stage, left_there = of.stages.end() - hash;
  const auto continues = [&](auto more_here, auto more_there) {
    return std::equal(stage + more_here, here.end(), hash + more_there, of.stages.end(), same);
  };
  if (of.stages.empty()) {
    differences.push_back("it does not say which");
  } else if (left_here > 0 && continues(1, 0)) {
    differences.push_back("its plan had no " + stage->text);
  } else if (left_there > 0 && continues(0, 1)) {
    differences.push_back(
        fmt::format("its plan had a further stage {}", left_here > 0 ? "before " + stage->text : "at its end"));
  } else if (left_here > 0 && left_there > 0) {
    const bool data = stage == here.begin();
    differences.push_back(
        data ? "its data, or the results of the version that saved it, were others"
             : fmt::format("it had another stage, or other options, in place of {}", stage->text));
  } else if (left_here > 0 || left_there > 0) {
    differences.push_back("its plan had other stages at its end");
  } else if (differences.empty()) {
    differences.push_back("its filters failed on other records");
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

// Maximum of lanes and of readers: no machine can use more, and the system may not grant more.
constexpr int kMaxWorkers = 1024;
constexpr int kMaxPrefetch = static_cast<int>(kMaxAhead);
constexpr int kBurstPrefetch = 32;
constexpr std::size_t kMaxBurstBatch = std::size_t{1} << 16;  // bytes

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

// Refuses a part of the replicas: loaders agree on the order of batches only if it is that of their numbers.
void check_order(const LoaderOptions& options, const DeviceGroup& devices) {
  if (options.in_order || options.world.total <= devices.size()) return;
  const std::string option = named("LoaderOptions::in_order", "false");
  throw ConfigError(
      fmt::format("{}: the loader serves {} of {} replicas, and the loaders of the others would hand "
                  "batches out in another order",
                  option, devices.size(), options.world.total),
      joined({advice("leave out {}", option), "serve all replicas by one loader"}));
}

// Refuses shares that cannot be even: of what is skipped only one of several replicas has fewer examples, and a
// stream's records are gone once they are used.
void check_shares(const LoaderOptions& options, const StreamPlan& plan, std::int64_t replicas) {
  if (options.even_shares == EvenShares::kOff || replicas == 1) return;
  const bool repeats = options.even_shares == EvenShares::kRepeat;
  const std::string option = named("LoaderOptions::even_shares", repeats ? "repeat" : "drop");
  if (options.errors.on_error == OnError::kSkip) {
    throw ConfigError(option + ": a skipped record leaves its replica with fewer examples than the others",
                      advice("replace bad records with {}", named("ErrorPolicy::on_error", "substitute")));
  }
  if (repeats && plan.source->info().streamed) {
    throw ConfigError(fmt::format("{}: {} is a stream, whose records come once", option, plan.source->info().name),
                      advice("give {}", named("LoaderOptions::even_shares", "drop")));
  }
  if (!repeats && plan.batch->global_batch < replicas) {
    throw ConfigError(fmt::format("{} leaves nothing of batches of {} for {} replicas", option,
                                  plan.batch->global_batch, replicas),
                      "make the global batch larger");
  }
}

// Refuses options that take a stream's records by their numbers or need their count.
void check_streamed(const LoaderOptions& options, const Source& source) {
  const std::string& name = source.info().name;
  if (options.epochs > 1 && source.sharded() == nullptr) {
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
  if (plan.source->info().streamed) check_streamed(options, *plan.source);
  check_world(options.world, devices);
  check_order(options, devices);
  check_shares(options, plan, std::max(options.world.total, devices.size()));
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

// Whether records are used so often that what is learned of them the first time pays for itself. It is learned in
// passing, unless the images were checked before.
bool uses_records_again(const StreamPlan& plan, const BatchSchedule& schedule, std::uint64_t epochs) {
  if (plan.source->info().streamed) return false;
  const std::uint64_t passes = plan.source->info().images_checked ? 3 : 2;
  const double examples = static_cast<double>(schedule.batches()) * static_cast<double>(schedule.largest_batch());
  return epochs >= passes ||
         examples >= static_cast<double>(passes) * static_cast<double>(plan.source->info().records);
}

// The examples that bad records are a share of: an epoch, or some batches of a stream.
std::uint64_t counted_examples(const StreamPlan& plan, const BatchSchedule& schedule) {
  constexpr std::uint64_t kOfAStream = 10'000;
  if (!plan.source->info().streamed) return schedule.examples_per_epoch();
  const auto batch = static_cast<std::uint64_t>(plan.batch->global_batch);
  return std::max<std::uint64_t>(1, kOfAStream / batch) * batch;
}

std::string name_of_counted(const StreamPlan& plan, std::uint64_t examples) {
  const bool streamed = plan.source->info().streamed;
  return fmt::format("{} {}", count_of(examples, "example"), streamed ? "in a row" : "of an epoch");
}

// Returns the fields of images that the devices keep, which are not sent with every batch.
std::vector<std::size_t> resident_fields(const DeviceSplit& split, const ResidentChoice& residency) {
  std::vector<std::size_t> fields;
  for (const DevicePass& pass : split.passes) {
    if (residency.resident) fields.push_back(pass.field);
  }
  return fields;
}

Fields with_length(Fields fields, std::int64_t length) {
  for (Field& field : fields) {
    if (field.shape.is_dynamic()) field.shape = field.shape.without_front().with_front(length);
  }
  return fields;
}

BatchShape ragged_shape(const StreamPlan& plan, std::int64_t examples, const ReplicaRange& range) {
  BatchShape shape{.fields = plan.fields, .layout = {}};
  for (const RaggedTensor& ragged : plan.ragged) {
    Field& values = shape.fields[ragged.values];
    values.shape = values.shape.without_front().with_front(plan.ragged_batch->max_length(values.name));
  }
  shape.layout = BatchLayout(shape.fields, examples, range, {}, plan.ragged);
  return shape;
}

std::optional<RaggedRows> ragged_rows_of(const StreamPlan& plan) {
  if (plan.ragged.empty()) return std::nullopt;
  RaggedRows rows;
  for (const RaggedTensor& ragged : plan.ragged) {
    rows.entry_bytes[ragged.values] = entry_bytes_of(plan.fields[ragged.values]);
    rows.lengths[ragged.values] = ragged.offsets;
  }
  return rows;
}

// Returns the shape of the batches of each bucket; of those that have none, of one example.
std::vector<BatchShape> shapes_of(const StreamPlan& plan, const BatchSchedule& schedule,
                                  const ReplicaRange& range) {
  std::vector<BatchShape> shapes;
  if (!plan.ragged.empty()) shapes.push_back(ragged_shape(plan, schedule.largest_batch(), range));
  for (std::size_t bucket = 0; plan.buckets != nullptr && bucket < plan.buckets->size(); ++bucket) {
    BatchShape& shape = shapes.emplace_back();
    shape.fields = with_length(plan.fields, plan.buckets->length(bucket));
    const std::int64_t examples = schedule.largest_batch(bucket);
    if (examples > 0) shape.layout = BatchLayout(shape.fields, examples, range);
  }
  return shapes;
}

// Returns the layout that takes most memory.
BatchLayout largest_of(const std::vector<BatchShape>& shapes, const ReplicaRange& range) {
  const auto bytes = [](const BatchShape& shape) { return shape.layout.buffer_bytes; };
  const auto largest = std::ranges::max_element(shapes, {}, bytes);
  if (largest->layout.buffer_bytes > 0) return largest->layout;
  return BatchLayout(largest->fields, 1, range);  // there are no batches
}

ReplicaRange range_of(const World& world, int local) {
  return {.first = world.first, .local = local, .world = world.total == 0 ? local : world.total};
}

}  // namespace

void check_ahead(const LoaderState& state) {
  std::uint64_t before = state.sequence;
  for (const std::uint64_t batch : state.ahead) {
    if (batch <= before || batch - state.sequence > kMaxAhead) {
      throw ConfigError(
          fmt::format("the loader state cannot have handed out batch {}: it stands at batch {}, and the "
                      "batches ahead of it ascend, up to {} further",
                      batch, state.sequence, kMaxAhead),
          "give a state as the loader gave it");
    }
    before = batch;
  }
}

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
      decoding(choose_decoding(plan, split, residency, devices, options.decode, options.pinned_budget_bytes > 0)),
      host(host_part(plan, split.passes)),
      schedule(plan, options.seed, options.epochs,
               {.even = options.even_shares, .replicas = std::max(options.world.total, devices.size())}),
      bad_records_of(counted_examples(plan, schedule)),
      bad_limit(options.errors, bad_records_of, name_of_counted(plan, bad_records_of)),
      filter_failures(FilterFailures::of(plan.index_stages)),
      fingerprint(filter_failures.mixed_into(mix_seed(plan.fingerprint(), options.seed))),
      stages(plan.identities()),
      shapes(shapes_of(plan, schedule, range_of(options.world, devices.size()))),
      layout(shapes.empty()
                 ? BatchLayout(host.fields, schedule.largest_batch(), range_of(options.world, devices.size()),
                               resident_fields(split, residency))
                 : largest_of(shapes, range_of(options.world, devices.size()))),
      program(host, decoding.field),
      ragged(ragged_rows_of(plan)),
      copies_rows(filter_failures.empty() && program.copies_columns()) {
  if (options.start) {
    if (options.start->fingerprint != fingerprint) {
      throw ConfigError("the loader state belongs to another stream: " +
                            describe_difference(stages, options.seed, *options.start),
                        "start again, or restore with the plan, the data and the seed it was saved with");
    }
    check_ahead(*options.start);
    first = options.start->sequence;
    if (options.start->records > 0 && source().info().streamed) schedule.end_at(options.start->records);
  }
  in_bursts = options.in_bursts && suits_bursts(devices);
  if (in_bursts && given.prefetch < 0) options.prefetch = std::max(options.prefetch, kBurstPrefetch);
  // Whether a batch ends its epoch is known when the next one is written.
  if (may_leave_out_batches()) options.prefetch = std::max(options.prefetch, 1);
  earlier = BatchSet(first, options.start ? options.start->ahead : std::vector<std::uint64_t>());
  if (uses_records_again(plan, schedule, options.epochs)) program.keep_jpeg_indexes(budgets.memory);
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

bool RunPlan::suits_bursts(const DeviceGroup& devices) const {
  const auto rows = static_cast<std::size_t>(schedule.largest_batch());
  return copies_rows && options.in_order && rows * layout.sample_bytes <= kMaxBurstBatch &&
         devices.in_host_memory();
}

std::uint64_t RunPlan::whole_end(std::uint64_t sequence) const noexcept {
  if (!source().info().streamed) return epoch_end(sequence);
  const std::uint64_t batches = bad_records_of / static_cast<std::uint64_t>(plan.batch->global_batch);
  return (sequence / batches + 1) * batches;
}

std::uint64_t RunPlan::epoch_end(std::uint64_t sequence) const noexcept {
  if (!schedule.is_known()) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t steps = schedule.steps_per_epoch();
  return (sequence / steps + 1) * steps;
}

}  // namespace headrace
