// A running plan: threads, batch slots and position. Gives each replica its share of every global batch, in
// order, already in that replica's device memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/devices/base/trace.h"
#include "headrace/devices/device_group.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/compute_arena.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/stats.h"

namespace HEADRACE_API headrace {

// Something the engine decided for itself, and why.
struct Choice {
  std::string what;    // "threads"
  std::string value;   // "3"
  std::string reason;  // "2 would give 81 % of the rate"
};

// Where a loader stands, in a few bytes: enough to continue anywhere, with other replicas and threads.
struct LoaderState {
  std::uint64_t fingerprint = 0;  // of the plan and seed it belongs to, and of what a filter could not judge
  std::uint64_t sequence = 0;     // global batches handed out to every replica

  // One line of text, "headrace-loader-1 <fingerprint> <sequence>".
  std::string serialize() const;
  // Throws ConfigError on anything else.
  static LoaderState parse(std::string_view text);

  bool operator==(const LoaderState&) const = default;
};

// All replicas that share the stream, whichever loaders and processes serve them. A loader's replicas are `first`
// and those after it, one a device. State and fingerprint do not depend on it.
struct World {
  int total = 0;  // 0: those of this loader alone
  int first = 0;

  // Each replica as so many, as DeviceGroup::repeated() has them.
  World repeated(int times) const noexcept { return {.total = total * times, .first = first * times}; }
  bool operator==(const World&) const = default;
};

struct LoaderOptions {
  std::uint64_t seed = 0;  // of everything random in the plan
  std::uint64_t epochs = 1;
  World world = {};
  int threads = 0;         // oneTBB tasks that compute at once at most; 0: chosen while running
  int reader_threads = 0;  // blocking reads, of sources that are not resident; 0: chosen while running
  int prefetch = -1;  // batches ahead, no more than the run has; -1: as the plan says, 2 where it says nothing
  std::optional<LoaderState> start = {};  // continue from here; ConfigError when it belongs to another stream
  double stall_timeout_seconds = 120;     // next() fails, naming the stage waited for, after this long; 0: never
  // Called about twenty times a second by a thread that waits in next(), or in the constructor for a pass over all
  // records (see ScanPoll), for a program that has to look for signals. What it throws leaves next(), where the
  // batch is there for the next call, or the constructor.
  std::function<void()> while_waiting = {};
  // Batches take their memory with them and their slots go on with other memory: any number of them may be kept,
  // and none holds the engine up. What is kept counts against no budget. Of devices with memory of their own, and
  // in headspace mode, batches are slots nevertheless.
  bool owned_batches = false;
  std::size_t trace_spans = 0;        // the latest spans kept of each thread; 0: nothing is traced
  std::shared_ptr<Trace> trace = {};  // another's trace, to which this run adds its threads

  ConvertAt convert = ConvertAt::kAuto;  // where u8 images become f32 for devices with memory of their own
  // What such a device makes of them: f32, or bf16, each number rounded to the nearest. A batch's tensors say
  // which; fields() are the plan's, and what the host makes is f32.
  DType converted = DType::kF32;

  Residency resident = Residency::kAuto;  // whether such devices keep the u8 images of a run of several epochs

  // Where compute runs; null: in an arena of the loader's own, bound as `constraints` say. It must allow tasks
  // that are only enqueued. A tbb::global_control of the embedding program is obeyed.
  std::shared_ptr<ComputeArena> arena = {};
  ArenaConstraints constraints = {};

  ErrorPolicy errors = {};  // of records that cannot be used

  // Hard budgets, 0: none. What does not fit makes the prefetch depth smaller, down to 1; where that does not do,
  // construction is a ConfigError that says how many bytes are needed. A quarter of the memory budget is left to
  // the threads' working memory where there is a choice; a record for which that is not enough fails its batch.
  std::uint64_t memory_budget_bytes = 0;  // batches in host memory that is not pinned, working memory, read-ahead
  std::uint64_t pinned_budget_bytes = 0;  // batches in pinned memory
  int cpu_budget = 0;    // compute threads at most; 0: one a processor, or as many as the arena allows
  int reader_limit = 8;  // readers at most, where they are chosen
  // Of each device's memory, for the samples it keeps: those that it does not hold are not kept. 0: as Residency
  // says.
  std::uint64_t resident_budget_bytes = 0;

  // Once this many batches were made (the ring's size at least), the same bytes are handed out again and again:
  // nothing is read, decoded or operated on. What a trainer reaches with it is its own ceiling. Such a stream has
  // no identity: state() and digests refuse it. 0: off.
  std::uint64_t headspace = 0;
};

// Shows the options that are data to a visitor.
inline void show(LoaderOptions& options, OptionVisitor& visit) {
  visit("seed", options.seed);
  visit("epochs", options.epochs);
  visit("world_replicas", options.world.total);
  visit("world_first", options.world.first);
  visit("threads", options.threads);
  visit("reader_threads", options.reader_threads);
  visit("prefetch", options.prefetch);
  std::string start = options.start ? options.start->serialize() : "";
  visit("start", start);
  options.start = start.empty() ? std::optional<LoaderState>() : LoaderState::parse(start);
  visit("on_error", options.errors.on_error, {"fail", "skip", "substitute"});
  visit("max_bad_share", options.errors.max_bad_share);
  visit("quarantine", options.errors.quarantine);
  visit("convert", options.convert, {"auto", "host", "device"});
  visit("converted", options.converted, {"uint8", "int32", "int64", "float16", "bfloat16", "float32"});
  visit("resident", options.resident, {"auto", "never", "always"});
  visit("memory_budget_bytes", options.memory_budget_bytes);
  visit("pinned_budget_bytes", options.pinned_budget_bytes);
  visit("resident_budget_bytes", options.resident_budget_bytes);
  visit("cpu_budget", options.cpu_budget);
  visit("reader_limit", options.reader_limit);
  visit("numa_node", options.constraints.numa_node);
  visit("core_type", options.constraints.core_type);
  visit("stall_timeout_seconds", options.stall_timeout_seconds);
  visit("trace_spans", options.trace_spans);
  visit("headspace", options.headspace);
}

// next() may be called by one thread a replica at a time; replicas are independent but for this: a replica
// cannot run ahead of another by more than the prefetch depth. Everything else is thread-safe.
// The stream of batches depends on the plan, the seed and nothing else: not on threads, replicas, prefetch.
class Loader {
 public:
  // `devices` must outlive the loader and its batches. Batches may outlive the loader.
  Loader(const Dataset& dataset, DeviceGroup& devices, LoaderOptions options = {});
  ~Loader();  // stops within a second from any state
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch of this replica; nothing at the end of the last epoch. Blocks until it is assembled.
  // Throws the error of the batch it would have been, in order, as LoaderOptions::errors says; after stop()
  // Error(kCancelled).
  std::optional<Batch> next(int replica = 0);

  // Rows of a replica's tensors: ceil(global / replicas of the world), or of an epoch's examples where they are
  // fewer.
  std::int64_t local_rows() const noexcept;
  std::uint64_t steps_per_epoch() const noexcept;
  const Fields& fields() const noexcept;
  // What it runs.
  const Dataset& dataset() const noexcept;
  // Those whose memory the batches are in: one a replica that it serves.
  DeviceGroup& devices() const noexcept;
  // The replicas that share the stream, and which of them are served; `total` is never 0.
  World world() const noexcept;
  // Tasks that may compute at once now, as the options or the tuning say.
  int threads() const noexcept;
  // Nothing is being tried any more: every choice has been made.
  bool tuned() const noexcept;

  // After the last batch that every replica took; what was only prefetched does not count. ConfigError in
  // headspace mode.
  LoaderState state() const;
  LoaderStats stats() const;
  // What the engine decided for itself: threads, readers, prefetch, each with its reason. May change while it
  // tunes.
  std::vector<Choice> choices() const;
  // What the threads did lately, in the Trace Event Format (ui.perfetto.dev, chrome://tracing). ConfigError where
  // LoaderOptions::trace_spans is 0.
  std::string trace_json() const;

  // Wakes every waiting next() and ends the engine's work. Idempotent.
  void stop() noexcept;

 private:
  class HEADRACE_HIDDEN Running;
  std::unique_ptr<Running> running_;
};

}  // namespace headrace
