#include "headrace/pipeline/engine/engine.h"

#include <unistd.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

// How long a stopped loader waits for user code before it leaves its threads to it.
constexpr double kStopGraceSeconds = 0.4;

std::shared_ptr<Trace> trace_of(const LoaderOptions& options) {
  if (options.trace != nullptr || options.trace_spans == 0) return options.trace;
  return std::make_shared<Trace>(options.trace_spans);
}

// Returns the number of read-ahead buffers: enough for every lane to take the next record while it works on one.
std::size_t buffers_of(const RunPlan& run) { return static_cast<std::size_t>(2 * run.lanes + run.readers); }

std::unique_ptr<StreamFeed> make_feed(const RunPlan& run, Ring& ring, MemoryBudget& budget) {
  return run.source().info().streamed ? std::make_unique<StreamFeed>(run, ring, budget) : nullptr;
}

}  // namespace

Engine::Engine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options, const Clock& clock)
    : process_(getpid()),
      budgets_(options),
      run_(dataset, devices, options, budgets_),
      trace_(trace_of(options)),
      allowance_(run_.lanes),
      transfer_(run_, devices, budgets_.memory),
      memory_(allocate_slots(run_, devices, transfer_.conversion(), budgets_, choices_)),
      ring_(std::make_shared<Ring>(std::move(memory_.slots), run_.first, run_.schedule.batches(), clock,
                                   RingOptions{.copied = !devices.in_host_memory(),
                                               .in_order = run_.options.in_order,
                                               .in_bursts = run_.in_bursts,
                                               .moves_held = run_.may_leave_out_batches()})),
      reader_(run_, ring_->stopped(), clock),
      errors_(run_, reader_),
      read_ahead_(*ring_, buffers_of(run_), budgets_.memory),
      remote_reads_(run_, budgets_.memory),
      compute_(run_, *ring_, reader_, errors_, read_ahead_, memory_.stores, budgets_),
      readers_(*ring_, reader_, errors_, read_ahead_, compute_),
      feed_(make_feed(run_, *ring_, budgets_.memory)),
      assembler_(run_, *ring_, compute_, transfer_, *assembling_, feed_.get(), remote_reads_, run_.readers > 0),
      telemetry_({.run = run_,
                  .budgets = budgets_,
                  .ring = *ring_,
                  .assembler = *assembling_,
                  .lanes = compute_.lanes(),
                  .readers = readers_,
                  .transfer = transfer_}),
      delivery_(run_, *ring_, telemetry_, trace_.get()),
      tuning_(run_, *ring_, delivery_, readers_, compute_, read_ahead_, choices_) {
  note_placement(devices);
  transfer_.open_streams(devices, trace_.get());
  if (trace_ == nullptr) return;
  run_.program.name_spans(*trace_);
  compute_.lanes().set_trace(*trace_);
  assembling_->trace = &trace_->ring("assembler");
}

// Notes where images are converted and kept; on devices that share the host's memory there is no choice.
void Engine::note_placement(const DeviceGroup& devices) {
  if (devices.in_host_memory()) return;
  const char* const where = run_.split.passes.empty() ? "on the host" : "on the device";
  choices_.note({.what = "conversion", .value = where, .reason = run_.split.reason});
  choices_.note({.what = "samples",
                 .value = run_.residency.resident ? "kept on the device" : "not kept on the device",
                 .reason = run_.residency.reason});
}

void Engine::start() {
  const auto self = shared_from_this();
  try {
    readers_.start(run_.readers, self, trace_.get());
    if (feed_ != nullptr) readers_.start_pulling(*feed_, self, trace_.get());
    assembler_thread_.emplace(
        [self](ThreadState& state) { end_stream_on_error(*self->ring_, state, [&] { self->assembler_.run(); }); },
        assembling_);
  } catch (...) {
    shut_down();
    throw;
  }
}

std::optional<Batch> Engine::next(int replica, std::optional<std::uint64_t> epoch) {
  if (is_forked()) {
    throw Error(ErrorCode::kUnsupported,
                "the loader was started before fork(): its threads are not in this process",
                "make the loader after fork()");
  }
  if (replica == 0) tuning_.observe();
  return delivery_.next(replica, epoch, shared_from_this());
}

void Engine::stop() noexcept {
  ring_->stop();
  read_ahead_.stop();
  if (feed_ != nullptr) feed_->stop();
  compute_.lanes().stop();
}

void Engine::shut_down() noexcept {
  stop();
  const std::uint64_t deadline = ring_->clock().after(kStopGraceSeconds);
  if (assembler_thread_) assembler_thread_->end(ring_->clock(), deadline);
  readers_.end(deadline);
  compute_.lanes().end(deadline, shared_from_this());
  remote_reads_.forget();
  transfer_.free_streams();
  ring_->free_memory();
  delivery_.free_memory();
  transfer_.free_memory();
}

bool Engine::is_forked() const noexcept { return getpid() != process_; }

LoaderState Engine::state() const {
  if (run_.options.headspace > 0) {
    throw ConfigError("a stream in headspace mode has no state: its batches are replayed",
                      advice("save states of runs with {}", named("LoaderOptions::headspace", "0")));
  }
  const BatchSet batches = delivery_.handed_out();
  LoaderState state{.fingerprint = run_.fingerprint,
                    .sequence = batches.first(),
                    .ahead = batches.ahead(),
                    .seed = run_.options.seed};
  for (const StageIdentity& stage : run_.stages) state.stages.push_back(stage.hash);
  if (feed_ != nullptr) feed_->save(state);
  return state;
}

std::string Engine::trace_json() const {
  if (trace_ == nullptr) {
    throw ConfigError("the loader was not asked to trace",
                      advice("set {}", named("LoaderOptions::trace_spans", "65536")));
  }
  return trace_->to_json();
}

}  // namespace headrace
