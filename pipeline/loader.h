// A running plan: threads, batch slots and position. Gives each replica its share of every global batch, in
// order, already in that replica's device memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// An automatic decision of the engine, with its reason.
struct Choice {
  std::string what;    // "threads"
  std::string value;   // "3"
  std::string reason;  // "2 would give 81 % of the rate"
};

// A loader's position, in some tens of bytes, of a stream of shards up to 4 KiB: enough to continue anywhere, with
// other replicas and threads.
struct LoaderState {
  std::uint64_t fingerprint = 0;  // of its plan, its seed and the records a filter could not judge
  std::uint64_t sequence = 0;     // all global batches below it were handed out to every replica
  // Later batches that were handed out, too: ascending, none further away than 1,024. Empty if LoaderOptions::
  // in_order was true from the start.
  std::vector<std::uint64_t> ahead = {};
  // The parts of the fingerprint, so that a loader of another stream can say what differs: the seed, and hashes of
  // the data and of each stage, in the order of StreamPlan::identities(). Empty: not known.
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> stages = {};
  // Of a stream: the records of an epoch, if `sequence` is of a later one than the first, else 0; and of one that
  // is read in shards, where each of those that are open stands, so that it continues there, and where the records
  // of the window lie. Empty: it is read again from the beginning of the epoch.
  std::uint64_t records = 0;
  std::string mark = {};

  // Returns one line of text, "headrace-loader-2 <fingerprint> <sequence> <seed> <stages>": eight hexadecimal
  // digits for each hash, or "-". "<ahead>" follows if there are batches ahead: hexadecimal digits of four
  // batches each, from sequence + 1 on, the lowest bit first; "-" before "<records> <mark>" of a stream, if it has
  // them. Throws ConfigError if `ahead` is not as required.
  std::string serialize() const;
  // Throws ConfigError on anything else.
  static LoaderState parse(std::string_view text);

  bool operator==(const LoaderState&) const = default;
};

// All replicas that share the stream, across loaders and processes. A loader's replicas are `first` and those
// after it, one per device. State and fingerprint do not depend on it.
struct World {
  int total = 0;  // 0: only those of this loader
  int first = 0;

  // Returns the world with each replica repeated `times` times, as in DeviceGroup::repeated().
  World repeated(int times) const noexcept { return {.total = total * times, .first = first * times}; }
  bool operator==(const World&) const = default;
};

struct LoaderOptions {
  std::uint64_t seed = 0;
  std::uint64_t epochs = 1;
  World world = {};
  int threads = 0;
  int reader_threads = 0;
  int prefetch = -1;
  // For consumers that compute on the same processors: where rows are only copied, in order, and a global batch
  // has at most 64 KiB, 32 batches are made ahead, unless `prefetch` says otherwise, and half of them at a time,
  // so that the engine's threads seldom interrupt the consumer's. A consumer that waits gets the next one at once.
  bool in_bursts = false;
  // If false, all replicas get the same order. Every batch has the number and the content that it has in order,
  // and those of an epoch come before any of the next. A batch is overtaken by at most `prefetch` others. Given up
  // are the order of batches, so that a training depends on timing, too; and which error comes first. ConfigError
  // for a part of the world's replicas: each loader would choose another order.
  bool in_order = true;
  // For consumers whose collectives need equally many. Repeated examples count like others; Batch::repeats() says
  // which they are. What is dropped is another part of each shuffled epoch. The stream stays the same one: state
  // and fingerprint do not depend on it. ConfigError with OnError::kSkip, and for repeating examples of a stream.
  EvenShares even_shares = EvenShares::kOff;
  // Whether batches of which no example is left are handed out, for consumers that count steps. If false, the next
  // batch comes in their place. The last one before them is BatchPosition::last_of_epoch, unless consumers hold as
  // many others as are made ahead; next() with an epoch sees even then where it ends.
  bool empty_batches = false;
  std::optional<LoaderState> start = {};  // ConfigError if it belongs to another stream
  double stall_timeout_seconds = 120;
  // Called about twenty times a second by a thread that waits in next(), or in the constructor for a pass over all
  // records (see ScanPoll), for programs that must poll for signals. An exception propagates from next(), and the
  // batch remains for the next call, or from the constructor.
  std::function<void()> while_waiting = {};
  // Batches take their memory with them, and their slots continue with other memory: any number of batches may be
  // kept without holding up the engine. Kept batches count against no budget. On devices with their own memory,
  // and in headspace mode, batches are slots nevertheless.
  bool owned_batches = false;
  std::size_t trace_spans = 0;
  std::shared_ptr<Trace> trace = {};  // an existing trace to which this run adds its threads

  ConvertAt convert = ConvertAt::kAuto;
  // Each number is rounded to nearest. A batch's tensors show the type; fields() are the plan's, and the host
  // produces f32.
  DType converted = DType::kF32;
  Residency resident = Residency::kAuto;
  ConvertAt decode = ConvertAt::kAuto;

  // The arena for compute; null: the loader's own, bound as `constraints` say. It must allow tasks that are only
  // enqueued. A tbb::global_control of the embedding program is obeyed.
  std::shared_ptr<ComputeArena> arena = {};
  ArenaConstraints constraints = {};

  ErrorPolicy errors = {};

  // Hard budgets. If batches do not fit, the prefetch depth shrinks, down to 1; if that is not enough, the
  // constructor throws a ConfigError that says how many bytes are needed. If possible, a quarter of the memory
  // budget is left to the threads' working memory; a record for which that is not enough fails its batch.
  std::uint64_t memory_budget_bytes = 0;
  std::uint64_t pinned_budget_bytes = 0;
  int cpu_budget = 0;
  int reader_limit = 8;
  std::uint64_t resident_budget_bytes = 0;  // samples that do not fit are not kept

  // Nothing is read, decoded or operated on any more, so a trainer reaches its own ceiling. At least as many
  // batches as the ring has are made. Such a stream has no identity: state() and digests refuse it.
  std::uint64_t headspace = 0;

  // The options that are data, not code.
  void each_field(OptionVisitor& visit) {
    visit("seed", seed, "The seed of everything random in the plan.");
    visit("epochs", epochs, "Passes over the data.");
    visit("world_replicas", world.total, "All replicas that share the stream; 0: only those served here.");
    visit("world_first", world.first, "The first replica that is served here.");
    visit("threads", threads, "The maximum of compute threads; 0: chosen while it runs.");
    visit("reader_threads", reader_threads,
          "Threads that read records which are not in memory yet; 0: chosen while it runs.");
    visit("prefetch", prefetch, "Batches made ahead of the consumer; -1: as the plan says, or 2.");
    visit(
        "in_order", in_order,
        "False: batches come as they become ready, so that a slow record holds up no other batch; each comes once "
        "an epoch, in an order that depends on timing.");
    visit("even_shares", even_shares, "Whether each replica gets equally many examples of a batch, and how.");
    std::string state = start ? start->serialize() : "";
    visit("start", state, "A state to continue from.");
    start = state.empty() ? std::optional<LoaderState>() : LoaderState::parse(state);
    errors.each_field(visit);
    visit("convert", convert, "Where uint8 images become numbers for devices with their own memory.");
    visit("converted", converted,
          "The type to which devices with their own memory convert uint8 images: float32 or bfloat16.");
    visit("resident", resident,
          "Whether devices with their own memory keep the uint8 images of a run of several epochs.");
    visit("decode", decode,
          "Where JPEGs that are cropped and resized become pixels for devices with their own memory; auto: on the "
          "host, and as many on the device as keep its consumer from waiting.");
    visit("memory_budget_bytes", memory_budget_bytes,
          "Maximum unpinned host memory for batches, working memory and read-ahead of each stream of batches; 0: "
          "no limit.");
    visit("pinned_budget_bytes", pinned_budget_bytes,
          "Maximum pinned host memory for the batches of each stream; 0: no limit.");
    visit("resident_budget_bytes", resident_budget_bytes,
          "Maximum memory of each device for the images it keeps; 0: as resident says.");
    visit("cpu_budget", cpu_budget,
          "Maximum number of compute threads that the engine may choose; 0: one per processor.");
    visit("reader_limit", reader_limit, "Maximum number of readers that the engine may choose.");
    constraints.each_field(visit);
    visit("stall_timeout_seconds", stall_timeout_seconds,
          "next() fails after this many seconds, naming the stage it waits for; 0: never.");
    visit("trace_spans", trace_spans, "Latest spans kept per thread for a trace; 0: none.");
    visit("headspace", headspace,
          "Batches made before the same bytes are handed out repeatedly, to measure a consumer; 0: off.");
  }
};

// next() may be called by one thread per replica at a time; replicas are independent, except that one cannot run
// ahead of another by more than the prefetch depth. Everything else is thread-safe. The stream of batches depends
// only on the plan and the seed: not on threads, replicas or prefetch. With LoaderOptions::in_order = false their
// order depends on timing.
class Loader {
 public:
  // `devices` must outlive the loader and its batches. Batches may outlive the loader.
  Loader(const Dataset& dataset, DeviceGroup& devices, LoaderOptions options = {});
  ~Loader();  // stops within a second from any state
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the next batch of this replica; std::nullopt at the end of the last epoch, and if the batch is of a
  // later epoch than `epoch`, to which it is then left. Blocks until it is assembled. Throws the error of the
  // batch it would have been, in its turn, as LoaderOptions::errors says; after stop(), Error(kCancelled).
  std::optional<Batch> next(int replica = 0, std::optional<std::uint64_t> epoch = std::nullopt);

  // Returns the rows of a replica's tensors: ceil(examples / replicas of the world), where examples is the global
  // batch, or the epoch's if those are fewer. Of bucket_by_length(): the most of any batch.
  std::int64_t local_rows() const noexcept;
  std::uint64_t steps_per_epoch() const noexcept;
  // Returns whether that number is certain: of shards that are not indexed once an epoch has ended.
  bool knows_steps() const noexcept;
  const Fields& fields() const noexcept;
  const Dataset& dataset() const noexcept;
  // Returns the devices whose memory holds the batches: one per replica served.
  DeviceGroup& devices() const noexcept;
  // Returns the replicas that share the stream, and which of them are served; `total` is never 0.
  World world() const noexcept;
  // Returns how many batches are made at a time, see LoaderOptions::in_bursts; otherwise 1.
  int burst() const noexcept;
  // Returns LoaderOptions::in_order.
  bool in_order() const noexcept;
  // Returns the current maximum of concurrent compute tasks, as the options or the tuning say.
  int threads() const noexcept;
  // Returns whether every choice has been made and tuning is over.
  bool tuned() const noexcept;

  // Returns the position after the last batch that every replica took; batches only prefetched do not count.
  // Throws ConfigError in headspace mode.
  LoaderState state() const;
  LoaderStats stats() const;
  // Returns the engine's choices: threads, readers, prefetch, each with its reason. They may change while it
  // tunes.
  std::vector<Choice> choices() const;
  // Returns the latest trace of the threads in the Trace Event Format (ui.perfetto.dev, chrome://tracing). Throws
  // ConfigError if LoaderOptions::trace_spans is 0.
  std::string trace_json() const;

  // Wakes every waiting next() and ends the engine's work. Idempotent.
  void stop() noexcept;

 private:
  class HEADRACE_HIDDEN Running;
  std::unique_ptr<Running> running_;
};

}  // namespace headrace
