#include "headrace/pipeline/engine/stream_engine.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <unistd.h>

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// How long a stopped loader waits for a function that is not ours before it leaves its thread to it.
constexpr std::chrono::milliseconds kGrace{400};

StreamPlan checked_plan(const Dataset& dataset) {
  StreamPlan plan = make_stream_plan(dataset.plan());
  if (!plan.batch) throw ConfigError("the plan has no batches", "call .batch() before giving it to a Loader");
  return plan;
}

LoaderOptions checked_options(LoaderOptions options, const StreamPlan& plan, const DeviceGroup& devices) {
  if (devices.size() < 1) throw ConfigError("a loader needs at least one device");
  if (options.threads < 0) throw ConfigError(fmt::format("threads = {} is negative", options.threads));
  if (options.reader_threads < 1) {
    throw ConfigError(fmt::format("reader_threads = {}: at least one is needed", options.reader_threads));
  }
  if (options.prefetch < 0) options.prefetch = plan.prefetch;
  if (options.threads == 0) options.threads = tbb::info::default_concurrency();
  return options;
}

}  // namespace

StreamEngine::StreamEngine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options)
    : plan_(checked_plan(dataset)),
      devices_(&devices),
      options_(checked_options(options, plan_, devices)),
      threads_(options_.threads),
      fingerprint_(mix_seed(plan_.fingerprint(), options_.seed)),
      schedule_(plan_, options_.seed, options_.epochs),
      layout_(plan_.fields, plan_.batch->global, devices.size()),
      program_(plan_),
      process_(getpid()),
      start_ns_(now_ns()),
      consumers_(static_cast<std::size_t>(devices.size())),
      arena_(threads_, static_cast<unsigned>(threads_)) {
  if (options_.start) {
    if (options_.start->fingerprint != fingerprint_) {
      throw ConfigError("the loader state belongs to another stream: its plan, data or seed differ",
                        "start anew, or restore with the plan, the data and the seed it was saved with");
    }
    first_ = options_.start->sequence;
  }
  for (const PlannedOperation& planned : plan_.batch_operations) mixers_.emplace_back(planned, plan_.fields);
  for (Consumer& consumer : consumers_) consumer.taken.store(first_);
  for (int i = 0; i <= options_.prefetch; ++i) {
    slots_.push_back(std::make_unique<Slot>(devices, plan_.fields, layout_));
  }
  if (options_.trace_spans > 0) trace_ = std::make_unique<Trace>(options_.trace_spans);
  for (int r = 0; r < devices.size(); ++r) {
    const auto ring = [&](const char* of) {
      return trace_ != nullptr ? &trace_->ring(fmt::format("{} {}", of, r)) : nullptr;
    };
    consumers_[static_cast<std::size_t>(r)].trace = ring("consumer");
    const bool copied = copies(slots_.front()->shares[static_cast<std::size_t>(r)]);
    copy_clocks_.push_back(copied ? std::make_unique<CopyClock>(ring("copy stream")) : nullptr);
    copy_streams_.push_back(copied ? devices[r].create_stream() : nullptr);
  }
  const auto fetches = static_cast<std::size_t>(2 * threads_ + options_.reader_threads);
  board_ = std::make_unique<WorkBoard>(slots_, first_, fetches);
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
      workers_.emplace_back([self](ThreadState& state) { self->arena_.execute([&] { self->compute(state); }); },
                            thread_state(fmt::format("compute {}", i), program_.stages().size() + mixers_.size()));
    }
    if (!plan_.source->info().resident) {
      for (int i = 0; i < options_.reader_threads; ++i) {
        readers_.emplace_back([self](ThreadState& state) { self->read(state); },
                              thread_state(fmt::format("reader {}", i), 0));
      }
    }
    if (trace_ != nullptr) assembling_->trace = &trace_->ring("assembler");
    assembler_thread_.emplace([self](ThreadState&) { self->assemble(); }, assembling_);
  } catch (...) {
    shut_down();
    throw;
  }
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
  if (assembler_thread_) assembler_thread_->end(kGrace);
  for (EngineThread& thread : readers_) thread.end(kGrace);
  for (EngineThread& thread : workers_) thread.end(kGrace);
  copy_streams_.clear();
  slots_.clear();
}

bool StreamEngine::is_forked() const noexcept { return getpid() != process_; }

LoaderState StreamEngine::state() const {
  std::uint64_t sequence = consumers_.front().taken.load();
  for (const Consumer& consumer : consumers_) sequence = std::min(sequence, consumer.taken.load());
  return {.fingerprint = fingerprint_, .sequence = sequence};
}

bool StreamEngine::copies() const noexcept {
  return std::any_of(copy_streams_.begin(), copy_streams_.end(), [](const auto& s) { return s != nullptr; });
}

std::string StreamEngine::trace_json() const {
  if (trace_ == nullptr) {
    throw ConfigError("the loader was not asked to trace", "set LoaderOptions::trace_spans, as 65536");
  }
  return trace_->to_json();
}

}  // namespace headrace
