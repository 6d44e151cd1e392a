// Start here. A Dataset is an immutable plan: every call returns a new one, nothing is read until a Loader
// runs it. Stages may be written in any sensible order; the planner moves index operations before decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/cache/disk_cache.h"
#include "headrace/cache/memory_cache.h"
#include "headrace/pipeline/convert_at.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/record_filter.h"
#include "headrace/pipeline/residency.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// What all images are known to measure, where it is known: from then on the plan counts on it, so that devices may
// crop and normalise, and keep, what was decoded. An image of another size is a bad record. 0 0: any size.
// pipeline/decoders/README.md says which images are bad records, and what is only counted as a warning.
struct DecodeOptions {
  std::int64_t height = 0, width = 0;
  // Images are turned the way up that their EXIF data say, as Pillow's ImageOps.exif_transpose does; height and
  // width are those after it. False: pixels come as they are stored, as in torchvision and tf.data. Either way
  // LoaderStats::oriented_images counts the images that say they are stored another way up.
  bool apply_orientation = false;
};

struct ShuffleOptions {
  std::uint64_t seed = 0;       // mixed with the loader's seed
  bool each_epoch_anew = true;  // false: the same order every epoch
};

struct ShuffleWindowOptions {
  std::uint64_t size = 1024;    // positions that are shuffled among themselves
  std::uint64_t seed = 0;       // mixed with the loader's seed
  bool each_epoch_anew = true;  // false: the same order every epoch
};

// By element: every count-th record. By file: every count-th file of a source that reads several.
// kAuto: by file where there is at least a file a worker, else by element.
enum class ShardBy { kAuto, kFile, kElement };

struct WorkerShard {
  std::uint64_t count = 1;  // workers
  std::uint64_t index = 0;  // this one
  ShardBy by = ShardBy::kAuto;
};

enum class Remainder {
  kKeep,  // the last batch of an epoch may be smaller
  kDrop,
};

struct BatchOptions {
  std::int64_t global = 32;  // examples over all replicas
  Remainder remainder = Remainder::kKeep;
};

// A raw field whose first extent differs from record to record, and what it becomes.
struct PadField {
  std::string field = {};
  std::int64_t length = 0;  // first extent of the result; 0: the longest record's, found by reading all of them
  std::byte value = {};     // of each byte of padding
};

struct PaddedBatchOptions {
  std::int64_t global = 32;
  Remainder remainder = Remainder::kKeep;
  std::vector<PadField> pad = {};  // empty: every such field, to its longest record, with zeros
};

// A memory cache for .cache(): shared by all loaders of the plan, so later fits find it warm.
std::shared_ptr<MemoryCache> memory(std::uint64_t budget_bytes = 0);
// Decoded samples in a folder, for this run and later ones, and for other processes: `.cache(disk("cache"))`.
std::shared_ptr<DiskCache> disk(const std::filesystem::path& folder, DiskCacheOptions options = {});

class DeviceGroup;

// One stage of a plan; see plan.h.
struct PlanNode;
using PlanPtr = std::shared_ptr<const PlanNode>;

class Dataset {
 public:
  static Dataset from(SourcePtr source);

  Dataset decode(DecodeOptions options = {}) const;    // JPEG / PNG -> u8 (H, W, 3)
  Dataset map(const Operations& operations) const;     // mixup() and cutmix() after .batch(), all others before
  Dataset shuffle(ShuffleOptions options = {}) const;  // a full-epoch permutation, O(1) memory
  Dataset repeat(std::int64_t times) const;            // an epoch becomes `times` passes, each shuffled anew
  Dataset take(std::uint64_t count) const;
  Dataset skip(std::uint64_t count) const;
  Dataset shard(std::uint64_t count, std::uint64_t index) const;          // every count-th record from index on
  Dataset without_shard(std::uint64_t count, std::uint64_t index) const;  // all the others
  // Only the records it keeps. It sees them as the source holds them, wherever it stands among the stages. All are
  // read once, in parallel, when the plan is first counted or opened; from then on any position is known at once.
  // Shuffles and repeats before it are done after it. What cannot be read or judged is kept and counted: it is
  // one of the stream's bad records, for LoaderOptions::errors to deal with, up to RecordFilter::most_unjudged.
  Dataset filter(RecordFilter filter) const;
  // Shuffles each `size` consecutive positions among themselves: for data that is best read nearly in order.
  Dataset shuffle_window(ShuffleWindowOptions options) const;
  // One worker's part. Parts are disjoint and complete; sharding by file may make them unequal.
  Dataset shard_for_worker(WorkerShard shard) const;
  // A record of N equal samples, the first extent of every field, becomes N records.
  Dataset unbatch() const;
  Dataset cache(std::shared_ptr<SampleCache> cache) const;  // what follows must be able to come after it
  Dataset batch(BatchOptions options) const;
  // batch() of records whose raw fields differ in their first extent: each is padded at its end to one length,
  // which is the same for all batches, and a field `<name>_length`, i64, says what was there. A longer record is
  // a bad one, as one that cannot be read, for LoaderOptions::errors to deal with.
  Dataset padded_batch(PaddedBatchOptions options) const;
  Dataset prefetch(int batches) const;  // batches in flight ahead of the consumer

  // The plan after push-down, one stage a line. Throws ConfigError where the plan makes no sense.
  std::string explain() const;
  // The same for these devices: which operations they do themselves, whether they keep the samples of a run of
  // several epochs, and why or why not.
  std::string explain(const DeviceGroup& devices, ConvertAt at = ConvertAt::kAuto,
                      Residency resident = Residency::kAuto) const;

  // Records in one epoch.
  std::uint64_t size() const;
  // Batches in one epoch; ConfigError before .batch().
  std::uint64_t steps_per_epoch() const;
  // Fields of one sample after all operations.
  Fields fields() const;
  // Class names where the source has them.
  std::vector<std::string> classes() const;
  // What lies there beside the records of its source.
  std::vector<LeftOut> left_out() const;
  // Identity of the stream: source, operations with versions and parameters, decoder. Not of thread counts, nor of
  // which records a filter could not judge: a LoaderState is of them, too.
  std::uint64_t fingerprint() const;

  const PlanPtr& plan() const noexcept { return plan_; }
  // A dataset of this plan, for those who build plans themselves.
  explicit Dataset(PlanPtr plan) : plan_(std::move(plan)) {}

 private:
  PlanPtr plan_;
};

}  // namespace headrace
