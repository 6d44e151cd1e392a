// A loader's measurements of itself, and the verdict they give: who waits for whom.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/cache/sample_cache.h"
#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Waiting times as counts on a logarithmic scale, four buckets per octave. A quantile is true to 12.5 %.
// Nanoseconds up to 18 minutes; longer waits count as that.
class WaitHistogram {
 public:
  static constexpr std::size_t kBuckets = 160;

  static std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns < 4) return static_cast<std::size_t>(ns);
    const int octave = static_cast<int>(std::bit_width(ns)) - 3;
    const std::size_t bucket = static_cast<std::size_t>(4 * octave) + static_cast<std::size_t>(ns >> octave);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // Returns the middle of a bucket.
  static double value_of(std::size_t bucket) noexcept;

  void add(std::size_t bucket, std::uint64_t count) noexcept { counts_[bucket] += count; }
  std::uint64_t count() const noexcept;
  // Returns the wait that this share (0 to 1) of all waits does not exceed; 0 if nothing was counted.
  double quantile_ns(double share) const noexcept;

  WaitHistogram& operator+=(const WaitHistogram& other) noexcept;
  // REQUIRES: `earlier` is an older reading of the same counts.
  WaitHistogram& operator-=(const WaitHistogram& earlier) noexcept;

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
};

enum class StageKind {
  kRead,      // Source::read: blocks on a disk or a network
  kDecode,    // encoded bytes to pixels
  kOperate,   // operations, mixing examples, and writing the rows of a batch
  kAssemble,  // choosing and distributing a batch's records
  kCopy,      // to a device's own memory
  kConsume,   // between two calls of next()
};

// Returns the lower-case name: "read".
const char* to_string(StageKind kind) noexcept;

// The work of one stage of a running plan: its share of `headrace explain`. Times are wall-clock, summed over the
// threads that run the stage.
struct StageStats {
  std::string name = {};
  StageKind kind = StageKind::kOperate;
  bool remote = false;      // reads over a network
  int threads = 1;          // maximum that run it at once
  std::uint64_t items = 0;  // examples that went through it
  std::uint64_t busy_ns = 0;
  // Time its threads waited for their next piece of work. Stages on the same threads share it.
  std::uint64_t wait_ns = 0;
  WaitHistogram waits = {};
  std::uint64_t decoded_bytes = 0;  // of whole images, though an operation may want only a window

  double ns_per_item() const noexcept;
  // Returns the busy fraction of its threads' time in `elapsed_ns`.
  double occupancy(std::uint64_t elapsed_ns) const noexcept;
};

struct LoaderStats {
  std::uint64_t elapsed_ns = 0;  // since construction, or in the interval
  std::uint64_t batches = 0;     // handed out to all local replicas: global batches
  std::uint64_t examples = 0;    // handed out
  std::uint64_t bytes = 0;       // batch data handed out
  // The consumer's wait in next(), for the replica that waited longest. Whether a device was idle meanwhile (input
  // stall) is the trainer's to tell (StepTimes): it asks for batches ahead of its devices.
  std::uint64_t consumer_wait_ns = 0;
  std::uint64_t read_ns = 0;         // readers in Source::read, summed over threads
  std::uint64_t decode_ns = 0;       // decoding, summed over threads
  std::uint64_t operate_ns = 0;      // operations and writing into the batch, summed over threads
  std::uint64_t first_batch_ns = 0;  // from construction to the first batch ready
  double ready_batches = 0;          // mean number of finished batches waiting when one was asked for
  std::uint64_t asked = 0;           // batches asked for, over all local replicas
  double ready_share = 0;            // fraction of the batches asked for that were already finished
  int slots = 0;                     // batches that fit in the ring
  std::uint64_t memory_bytes = 0;    // charged to the memory budget: batches, working memory, records read ahead
  std::uint64_t pinned_bytes = 0;    // charged to the pinned budget
  std::uint64_t kept_records = 0;    // kept by the devices
  std::uint64_t device_decoded = 0;  // images decoded by the devices
  std::uint64_t kept_bytes = 0;      // per device, for all that it will keep
  CacheCounters cache = {};
  std::string cache_trouble = {};  // why a cache stores nothing more; empty if all is well
  std::uint64_t bad_records = 0;   // in the batches handed out: skipped or replaced
  // In the batches handed out, counted when decoded for them: a cache that holds a sample does not know its file.
  std::uint64_t warned_records = 0;     // used, though their image is damaged in a way that changes no pixel
  std::uint64_t oriented_images = 0;    // images stored another way up, by their EXIF data
  std::uint64_t read_retries = 0;       // retries of reads that the system refused
  std::vector<StageStats> stages = {};  // in the order a record meets them; the consumer is last

  double examples_per_second() const noexcept;
  // Returns what happened after `earlier`, an older reading of the same loader. Values that do not accumulate
  // (slots, the time to the first batch) stay unchanged.
  LoaderStats since(const LoaderStats& earlier) const;
  // Returns this and an earlier interval of the same plan combined. Values that do not accumulate stay unchanged.
  LoaderStats after(const LoaderStats& earlier) const;
  // Throws Error if records were bad in this time and not one example was good.
  void require_good() const;
  // Returns one line: rate, bytes per second, consumer wait, batches ready, cache hits.
  std::string summary() const;
};

// The bottleneck of a running plan, and changes that would help, computed from its counters alone.
//
// The model. A plan is a line of stations that work at the same time: readers, compute threads, the assembler, the
// copy streams, the consumers. From the counters of an interval each station has a cost, the nanoseconds of its
// threads' time per example delivered, and so a rate it cannot exceed: threads / cost. With slots to work ahead
// in, the line moves at the rate of its slowest station; with a single slot the engine and the consumer take
// turns, and their costs add up. Stages that run on the same threads share a station, named after the one that
// takes most of the time. The model ignores that stations compete for the machine's cores and memory, and that
// costs vary from example to example more than the slots level out.

// The predicted or measured rate after one change.
struct WhatIf {
  std::string what = {};         // "one more core and a compute thread on it"
  double images_per_second = 0;  // 0: nothing would bound it
  std::string bottleneck = {};   // after the change; empty: none
  // If the change was tried: the rate of the unchanged plan, measured in turn with it, in images/s. 0: computed,
  // to be compared with the ceiling.
  double instead_of = 0;
};

struct Verdict {
  std::string bottleneck = {};           // a stage's name; empty if nothing was delivered
  std::string kind = {};                 // "disk", "network", "CPU", "copy" or "consumer"
  double ceiling_images_per_second = 0;  // predicted for the plan as it runs; at least the measured rate
  double measured_images_per_second = 0;
  std::vector<WhatIf> what_ifs = {};

  // Returns "input-bound at decode: CPU; ceiling 900 images/s, measured 880".
  std::string sentence() const;
  // Returns "with twice the readers: 990 images/s (+10 %), bound by decode", "(x 5.6)" from three times on; if
  // tried, "... (10.0 times the 99 without it, in turn) ...". REQUIRES: `what_if` is one of `what_ifs`.
  std::string sentence(const WhatIf& what_if) const;
};

// Returns the verdict on `interval`, which should exclude the start: see LoaderStats::since().
Verdict judge(const LoaderStats& interval);

}  // namespace headrace
