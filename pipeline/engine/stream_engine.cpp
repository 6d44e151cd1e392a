#include "headrace/pipeline/engine/stream_engine.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/counted.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// How long a stopped loader waits for a function that is not ours before it leaves its thread to it.
constexpr std::chrono::milliseconds kStopGrace{400};
// Of compute threads and of readers: no machine has use for more, and the system may not give more.
constexpr int kMaxThreads = 1024;
constexpr int kMaxPrefetch = 1024;
// Readers that a run begins with where they are chosen.
constexpr int kFirstReaders = 4;

StreamPlan checked_plan(const Dataset& dataset) {
  StreamPlan plan = make_stream_plan(dataset.plan());
  if (!plan.batch) throw ConfigError("the plan has no batches", "call .batch() before giving it to a Loader");
  return plan;
}

// Throws ConfigError where `value` is not within `least` and `most`.
void want_within(const char* option, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw ConfigError(fmt::format("{} = {}: {} to {} are possible", option, value, least, most));
}

LoaderOptions checked_options(LoaderOptions options, const StreamPlan& plan, const DeviceGroup& devices) {
  if (devices.size() < 1) throw ConfigError("a loader needs at least one device");
  want_within("threads", options.threads, 0, kMaxThreads);
  want_within("reader_threads", options.reader_threads, 0, kMaxThreads);
  want_within("reader_limit", options.reader_limit, 1, kMaxThreads);
  want_within("cpu_budget", options.cpu_budget, 0, std::numeric_limits<int>::max());
  if (options.cpu_budget > 0 && options.threads > options.cpu_budget) {
    throw ConfigError(
        fmt::format("threads = {} is more than cpu_budget = {}", options.threads, options.cpu_budget),
        "lower threads, or give 0 to have them chosen");
  }
  if (options.converted != DType::kF32 && options.converted != DType::kBF16) {
    throw ConfigError(fmt::format("images cannot be converted to {}", to_string(options.converted)),
                      "LoaderOptions::converted is float32 or bfloat16");
  }
  if (options.prefetch < 0) options.prefetch = plan.prefetch;
  want_within("prefetch", options.prefetch, 0, kMaxPrefetch);
  return options;
}

// No batch is sent anywhere.
bool all_in_place(const DeviceGroup& devices) {
  for (int r = 0; r < devices.size(); ++r) {
    if (!devices[r].info().host_memory) return false;
  }
  return true;
}

int compute_threads(const LoaderOptions& options) {
  if (options.threads > 0) return options.threads;
  const int processors = tbb::info::default_concurrency();
  return options.cpu_budget > 0 ? std::min(options.cpu_budget, processors) : processors;
}

int reader_threads(const LoaderOptions& options, const StreamPlan& plan) {
  if (plan.source->info().resident) return 0;
  return options.reader_threads > 0 ? options.reader_threads : options.reader_limit;
}

// Whether records are used so often that what is learned of them the first time pays for itself.
bool comes_again(const StreamPlan& plan, const BatchSchedule& schedule, std::uint64_t epochs) {
  constexpr std::uint64_t kPasses = 3;
  const double examples = static_cast<double>(schedule.batches()) * static_cast<double>(schedule.largest_batch());
  return epochs >= kPasses ||
         examples >= static_cast<double>(kPasses) * static_cast<double>(plan.source->info().records);
}

// Of images that the devices keep: they are not sent with every batch.
std::vector<std::size_t> fields_apart(const DeviceSplit& split, const ResidentChoice& residency) {
  std::vector<std::size_t> fields;
  for (const DevicePass& pass : split.passes) {
    if (residency.resident) fields.push_back(pass.field);
  }
  return fields;
}

TuningLimits tuning_limits(const LoaderOptions& options, int threads, int readers) {
  const bool choose_readers = options.reader_threads == 0;
  return {.threads = threads,
          .least_threads = options.threads > 0 ? threads : 1,
          .readers = choose_readers ? std::min(readers, kFirstReaders) : readers,
          .least_readers = choose_readers ? 1 : readers,
          .most_readers = readers};
}

}  // namespace

StreamEngine::StreamEngine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options)
    : plan_(checked_plan(dataset)),
      devices_(&devices),
      options_(checked_options(options, plan_, devices)),
      threads_(compute_threads(options_)),
      reader_count_(reader_threads(options_, plan_)),
      split_(split_for_devices(plan_, devices, options_.convert)),
      residency_(choose_residency(plan_, split_, devices,
                                  {.residency = options_.resident,
                                   .epochs = options_.epochs,
                                   .budget_bytes = options_.resident_budget_bytes,
                                   .host_budget_bytes = options_.memory_budget_bytes})),
      host_(host_part(plan_, split_.passes)),
      schedule_(plan_, options_.seed, options_.epochs),
      bad_limit_(options_.errors, schedule_.examples_per_epoch(),
                 fmt::format("{} of an epoch", count_of(schedule_.examples_per_epoch(), "example"))),
      unjudged_(UnjudgedRecords::of(plan_.index_stages)),
      fingerprint_(unjudged_.mixed_into(mix_seed(plan_.fingerprint(), options_.seed))),
      layout_(host_.fields, schedule_.largest_batch(), devices.size(), fields_apart(split_, residency_)),
      memory_budget_("memory_budget_bytes", options_.memory_budget_bytes),
      pinned_budget_("pinned_budget_bytes", options_.pinned_budget_bytes),
      program_(host_),
      copier_(unjudged_.empty() ? RowCopier::of(*plan_.source, program_) : std::nullopt),
      process_(getpid()),
      start_ns_(now_ns()),
      consumers_(static_cast<std::size_t>(devices.size())),
      arena_(threads_, static_cast<unsigned>(threads_)),
      tuner_(tuning_limits(options_, threads_, reader_count_)) {
  if (options_.start) {
    if (options_.start->fingerprint != fingerprint_) {
      throw ConfigError("the loader state belongs to another stream: its plan, data or seed differ",
                        "start anew, or restore with the plan, the data and the seed it was saved with");
    }
    first_ = options_.start->sequence;
  }
  if (comes_again(plan_, schedule_, options_.epochs)) program_.keep_maps(memory_budget_);
  for (const PlannedOperation& planned : plan_.batch_operations) mixers_.emplace_back(planned, plan_.fields);
  for (Consumer& consumer : consumers_) consumer.taken.store(first_);
  if (options_.errors.tally != nullptr) options_.errors.tally->begin(plan_.source->info());
  if (!options_.errors.quarantine.empty()) quarantine_.emplace(options_.errors.quarantine);
  if (!all_in_place(devices)) {
    const char* where = split_.passes.empty() ? "on the host" : "on the device";
    note({.what = "conversion", .value = where, .reason = split_.reason});
    note({.what = "samples",
          .value = residency_.resident ? "kept on the device" : "not kept on the device",
          .reason = residency_.reason});
  }
  if (!split_.passes.empty())
    conversion_.emplace(devices, plan_.fields, split_.passes, layout_, options_.converted);
  if (residency_.resident) {
    resident_.emplace(devices, host_.fields, split_.passes, layout_, residency_.records, memory_budget_);
  }
  allocate_slots();
  trace_ = options_.trace;
  if (trace_ == nullptr && options_.trace_spans > 0) trace_ = std::make_shared<Trace>(options_.trace_spans);
  if (trace_ != nullptr) program_.name_spans(*trace_);
  for (int r = 0; r < devices.size(); ++r) {
    const auto ring = [&](const char* of) {
      return trace_ != nullptr ? &trace_->ring(fmt::format("{} {}", of, r)) : nullptr;
    };
    consumers_[static_cast<std::size_t>(r)].trace = ring("consumer");
    const bool copied = copies(slots_.front()->shares[static_cast<std::size_t>(r)]);
    copy_clocks_.push_back(copied ? std::make_unique<CopyClock>(ring("copy stream")) : nullptr);
    copy_streams_.push_back(copied ? devices[r].create_stream() : nullptr);
  }
  const auto fetches = static_cast<std::size_t>(2 * threads_ + reader_count_);
  board_ = std::make_unique<WorkBoard>(slots_, first_, fetches, memory_budget_);
  apply_tuning();
}

void StreamEngine::start() {
  const auto self = shared_from_this();
  const auto thread_state = [&](const std::string& name, std::size_t stages) {
    auto state = std::make_shared<ThreadState>(stages);
    if (trace_ != nullptr) state->trace = &trace_->ring(name);
    return state;
  };
  try {
    for (int i = 0; i < threads_; ++i) {
      // The arena holds parallel algorithms that a user's function may run to this loader's threads.
      workers_.emplace_back(
          [self, i](ThreadState& state) {
            self->run_thread(state, [&] { self->arena_.execute([&] { self->compute(state, i); }); });
          },
          thread_state(fmt::format("compute {}", i), program_.stages().size() + mixers_.size()));
    }
    for (int i = 0; i < reader_count_; ++i) {
      readers_.emplace_back(
          [self, i](ThreadState& state) { self->run_thread(state, [&] { self->read(state, i); }); },
          thread_state(fmt::format("reader {}", i), 0));
    }
    if (trace_ != nullptr) assembling_->trace = &trace_->ring("assembler");
    assembler_thread_.emplace([self](ThreadState& state) { self->run_thread(state, [&] { self->assemble(); }); },
                              assembling_);
  } catch (...) {
    shut_down();
    throw;
  }
}

template <typename Body>
void StreamEngine::run_thread(const ThreadState& state, const Body& body) {
  try {
    body();
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    break_off(state, error);
  } catch (...) {
    break_off(state, UnnamedException());
  }
}

// What is expected to fail is the failure of its batch; this is for the rest, as memory that runs out in between.
void StreamEngine::break_off(const ThreadState& state, const std::exception& error) noexcept {
  Failure failure;
  try {
    failure = Failure::of_batch(error);
    if (failure.what.operation.empty()) failure.what.operation = state.doing();
  } catch (const std::exception&) {
    failure.what.code = ErrorCode::kOutOfMemory;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!broken_off_) broken_off_ = std::move(failure);
  }
  ready_.notify_all();
}

void StreamEngine::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_.store(true);
  }
  ready_.notify_all();
  assembler_.notify_all();
  board_->stop();
}

void StreamEngine::shut_down() noexcept {
  stop();
  if (assembler_thread_) assembler_thread_->end(kStopGrace);
  for (EngineThread& thread : readers_) thread.end(kStopGrace);
  for (EngineThread& thread : workers_) thread.end(kStopGrace);
  copy_streams_.clear();
  slots_.clear();
  conversion_.reset();
  resident_.reset();
}

bool StreamEngine::is_forked() const noexcept { return getpid() != process_; }

LoaderState StreamEngine::state() const {
  if (options_.headspace > 0) {
    throw ConfigError("a stream in headspace mode has no state: its batches are replayed",
                      "save states of runs with LoaderOptions::headspace = 0");
  }
  return {.fingerprint = fingerprint_, .sequence = position()};
}

std::uint64_t StreamEngine::position() const {
  std::uint64_t sequence = consumers_.front().taken.load();
  for (const Consumer& consumer : consumers_) sequence = std::min(sequence, consumer.taken.load());
  return sequence;
}

bool StreamEngine::copies() const noexcept {
  return std::any_of(copy_streams_.begin(), copy_streams_.end(), [](const auto& s) { return s != nullptr; });
}

std::vector<Choice> StreamEngine::choices() const {
  const std::lock_guard lock(choices_mutex_);
  return choices_;
}

std::string StreamEngine::trace_json() const {
  if (trace_ == nullptr) {
    throw ConfigError("the loader was not asked to trace", "set LoaderOptions::trace_spans, as 65536");
  }
  return trace_->to_json();
}

}  // namespace headrace
