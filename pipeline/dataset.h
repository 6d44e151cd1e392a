// Start here. A Dataset is an immutable plan: every call returns a new one, and nothing is read until a Loader
// runs it. Stages that choose and order records (shuffle, repeat, take, skip, shard, filter) may stand anywhere
// among decode(), map() and cache(): the planner applies them first, to record numbers. After batch() they choose
// and order whole batches, except filter(), until an unbatch(). A map() follows the stages that make its input and
// works on single samples, also after batch(); mixup() and cutmix() follow batch(), and after them samples are
// changed no more. Nothing random precedes cache(), which keeps samples, not their order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/cache/disk_cache.h"
#include "headrace/cache/memory_cache.h"
#include "headrace/devices/base/api.h"
#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/record_filter.h"
#include "headrace/pipeline/source.h"

namespace HEADRACE_API headrace {

// Selects where image bytes become the numbers that a network takes, or JPEGs become pixels. The stream's bits are
// the same either way.
enum class ConvertAt {
  kAuto,    // conversion: on the device if possible, which transfers fewer bytes; decoding: as much as keeps up
  kHost,    // always by the engine's threads
  kDevice,  // on the device; ConfigError if impossible
};
constexpr std::array<const char*, 3> choice_names(ConvertAt /*of*/) { return {"auto", "host", "device"}; }

// Selects whether devices keep the samples sent to them. The stream's bits are the same either way.
enum class Residency {
  // Kept in runs of several epochs, or of one that repeats its records, on devices with their own memory, if
  // nothing random is left to the host and the samples fit in a quarter of each device's free memory.
  kAuto,
  kNever,   // every batch crosses the bus
  kAlways,  // kept if all free memory holds them; ConfigError if they cannot be
};
constexpr std::array<const char*, 3> choice_names(Residency /*of*/) { return {"auto", "never", "always"}; }

// The size of all images, if it is known: the plan then relies on it, so that devices may crop, normalise and keep
// decoded images. An image of another size is a bad record. 0 0: any size, unless batch() or an operation needs
// one: then the size of the first image counts, in the order of the source's records regardless of later stages.
// The plan reads that record whenever it is inspected; explain() names it. Images of a stream cannot be inspected
// beforehand. pipeline/decoders/README.md says which images are bad records, and which problems count only as
// warnings.
struct DecodeOptions {
  std::int64_t height = 0, width = 0;
  // Turns images as their EXIF data say, as Pillow's ImageOps.exif_transpose does; height and width are those
  // after turning. False: pixels stay as stored, as in torchvision and tf.data. Either way
  // LoaderStats::oriented_images counts the images whose EXIF data say that they are stored another way up.
  bool apply_orientation = false;
  void each_field(OptionVisitor& visit) {
    visit("height", height, "The height of all images; 0: any.");
    visit("width", width, "The width of all images; 0: any.");
    visit("apply_orientation", apply_orientation, "Whether images are turned as their EXIF data say.");
  }
};

struct ShuffleOptions {
  std::uint64_t seed = 0;
  bool reshuffle_each_epoch = true;
  void each_field(OptionVisitor& visit) {
    visit("seed", seed, "Mixed with the loader's seed.");
    visit("reshuffle_each_epoch", reshuffle_each_epoch, "False: the same order in every epoch.");
  }
};

struct ShuffleWindowOptions {
  std::uint64_t size = 1024;
  std::uint64_t seed = 0;
  bool reshuffle_each_epoch = true;
  void each_field(OptionVisitor& visit) {
    visit("size", size, "How many positions are shuffled among themselves.");
    visit("seed", seed, "Mixed with the loader's seed.");
    visit("reshuffle_each_epoch", reshuffle_each_epoch, "False: the same order in every epoch.");
  }
};

struct ShuffleShardsOptions {
  std::uint64_t window = 1024;
  std::uint64_t shards = 8;
  std::uint64_t seed = 0;
  bool reshuffle_each_epoch = true;
  void each_field(OptionVisitor& visit) {
    visit(
        "window", window,
        "Records that are shuffled among themselves. The first windows of an epoch are smaller, from a sixteenth "
        "on, so that the first batch comes soon. Two windows are kept in memory, as the source holds them.");
    visit("shards", shards, "Shards that are read at a time, a record of each in turn; 64 at most.");
    visit("seed", seed, "Mixed with the loader's seed.");
    visit("reshuffle_each_epoch", reshuffle_each_epoch, "False: the same order in every epoch.");
  }
};

struct ShuffleBlocksOptions {
  std::uint64_t block = 256;
  std::uint64_t group = 16;
  std::uint64_t seed = 0;
  bool reshuffle_each_epoch = true;
  void each_field(OptionVisitor& visit) {
    visit("block", block, "Consecutive records that stay together: enough for a few megabytes.");
    visit("group", group, "Blocks whose records are shuffled among themselves.");
    visit("seed", seed, "Mixed with the loader's seed.");
    visit("reshuffle_each_epoch", reshuffle_each_epoch, "False: the same order in every epoch.");
  }
};

// By element: every count-th record. By file: every count-th file of a source that reads several. kAuto: by file
// if there is at least one file per worker, else by element.
enum class ShardBy { kAuto, kFile, kElement };
constexpr std::array<const char*, 3> choice_names(ShardBy /*of*/) { return {"auto", "file", "element"}; }

struct WorkerShard {
  std::uint64_t count = 1, index = 0;
  ShardBy by = ShardBy::kAuto;
  void each_field(OptionVisitor& visit) {
    visit("count", count, "The number of workers.");
    visit("index", index, "This worker's number, from 0.");
    visit("by", by, "Whether whole files are shared out, or single records.");
  }
};

struct BatchOptions {
  std::int64_t global_batch = 32;
  bool drop_remainder = false;
  void each_field(OptionVisitor& visit) {
    visit("global_batch", global_batch, "Examples of a batch, over all replicas of the world.");
    visit("drop_remainder", drop_remainder, "Whether a smaller last batch of an epoch is left out.");
  }
};

// A raw field whose first extent differs from record to record, and how it is padded.
struct PadField {
  std::string field = {};
  std::int64_t length = 0;
  std::uint8_t value = 0;
  void each_field(OptionVisitor& visit) {
    visit("field", field, "The field that is padded.");
    visit(
        "length", length,
        "The first extent of the result; 0: that of the longest record, found by reading all, or of the bucket.");
    visit("value", value, "Each byte of padding.");
  }
};

struct EnumerateOptions {
  std::string field = "index";
  void each_field(OptionVisitor& visit) { visit("field", field, "The field that is added."); }
};

struct WindowOptions {
  std::uint64_t size = 2, shift = 0;
  bool drop_remainder = true;
  void each_field(OptionVisitor& visit) {
    visit("size", size, "Records of a window: the first extent of each field.");
    visit("shift", shift, "Records from the start of one window to the start of the next; 0: `size`.");
    visit("drop_remainder", drop_remainder,
          "False: windows that start near the end have fewer records, so that the first extent varies, as "
          "padded_batch() takes it.");
  }
};

struct PaddedBatchOptions {
  std::int64_t global_batch = 32;
  bool drop_remainder = false;
  std::vector<PadField> pad = {};
  void each_field(OptionVisitor& visit) {
    visit("global_batch", global_batch, "Examples of a batch, over all replicas of the world.");
    visit("drop_remainder", drop_remainder, "Whether a smaller last batch of an epoch is left out.");
    visit("pad", pad, "Empty: every field whose first extent varies, to its longest record, with zeros.");
  }
};

// A field whose first extent differs from sample to sample, and which a batch holds without padding.
struct RaggedField {
  std::string field = {};
  std::int64_t max_length = 0;
  void each_field(OptionVisitor& visit) {
    visit("field", field, "The field. An image stays encoded: bytes.");
    visit("max_length", max_length, "Of a sample; 0: that of the source's longest record, found by reading all.");
  }
};

struct RaggedBatchOptions {
  std::int64_t global_batch = 32;
  bool drop_remainder = false;
  std::vector<RaggedField> fields = {};
  void each_field(OptionVisitor& visit) {
    visit("global_batch", global_batch, "Examples of a batch, over all replicas of the world.");
    visit("drop_remainder", drop_remainder, "Whether a smaller last batch of an epoch is left out.");
    visit("fields", fields, "Empty: every field whose first extent varies.");
  }
};

// Buckets of records of similar length, which are batched among themselves.
struct BucketOptions {
  std::string field = {};
  std::vector<std::int64_t> boundaries = {}, batch_sizes = {};
  std::int64_t max_length = 0;
  bool drop_remainder = false;
  std::vector<PadField> pad = {};
  void each_field(OptionVisitor& visit) {
    visit("field", field, "The field whose first extent is the length: raw, of the source, and padded.");
    visit(
        "boundaries", boundaries,
        "The greatest length of each bucket but the last, ascending. A batch's samples are padded to that of its "
        "bucket.");
    visit("batch_sizes", batch_sizes, "Examples over all replicas, for each bucket; one: for all of them.");
    visit("max_length", max_length,
          "Of the last bucket; longer records are bad. 0: that of the longest record, found by reading all.");
    visit("drop_remainder", drop_remainder, "Whether smaller last batches of an epoch are left out.");
    visit("pad", pad, "Fields that are padded; empty: every one whose first extent varies, with zeros.");
  }
};

// Returns a memory cache for .cache(). All loaders of the plan share it, so later fits find it warm.
std::shared_ptr<MemoryCache> memory(std::uint64_t budget_bytes = 0);
// Returns a disk cache of decoded samples, also for later runs and other processes: `.cache(disk("cache"))`.
std::shared_ptr<DiskCache> disk(const std::filesystem::path& folder, DiskCacheOptions options = {});

// The parts of a plan that its JSON only names because they are code.
struct PlanParts {
  // In-memory arrays, generators, streams and custom sources: `{"named": "my_data", "fingerprint": "..."}`.
  std::map<std::string, SourcePtr> sources = {};
  // user_map() and user_operation(), by name: `{"named": "my_map", "version": 2}`.
  std::vector<Operations> operations = {};
  // By name: `{"named": "my_filter", "version": 1}`.
  std::vector<RecordFilter> filters = {};
};

struct PlanOptions {
  PlanParts parts = {};
  std::filesystem::path base = {};  // base of relative paths; empty: the process's working folder
  // False: a path in the plan is a ConfigError, for plans from callers who must not choose which files this
  // process opens.
  bool allow_paths = true;
  // Replaces the plan's own source, which is then not opened; a decode() is skipped if its images are already
  // pixels. Null: the plan's own source.
  SourcePtr data = {};
  std::int64_t global_batch = 0;  // examples in a batch; 0: as the plan says
};

class DeviceGroup;

// One stage of a plan; see plan.h.
struct PlanNode;
using PlanPtr = std::shared_ptr<const PlanNode>;

class Dataset {
 public:
  static Dataset from(SourcePtr source);

  Dataset decode(DecodeOptions options = {}) const;    // JPEG / PNG -> u8 (H, W, 3)
  Dataset map(const Operations& operations) const;     // of each sample; mixup() and cutmix() after .batch()
  Dataset shuffle(ShuffleOptions options = {}) const;  // a full-epoch permutation, O(1) memory
  Dataset repeat(std::int64_t times) const;            // an epoch becomes `times` passes, each shuffled again
  Dataset take(std::uint64_t count) const;
  Dataset skip(std::uint64_t count) const;
  // Chooses the records with these numbers, zero-based positions of what the stages before it leave, in the order
  // given; after batch(), whole batches. A number may be repeated: random operations before batch() then treat its
  // record differently each time, unless a shuffle precedes. When the plan is first counted or opened, throws
  // ConfigError if a number is out of range.
  Dataset select(std::vector<std::uint64_t> numbers) const;
  Dataset shard(std::uint64_t count, std::uint64_t index) const;          // every count-th record from index on
  Dataset without_shard(std::uint64_t count, std::uint64_t index) const;  // all the others
  // Keeps only the records that the filter accepts. It sees them as the source holds them, wherever it stands
  // among the stages, or, if RecordFilter::processed is set, as the preceding stages leave them. All are read
  // once, in parallel, when the plan is first counted or opened; from then on any position is known at once.
  // Shuffles and repeats before it are applied after it. Records that cannot be read or judged are kept and
  // counted as bad records of the stream, for LoaderOptions::errors to handle, up to RecordFilter::max_failures.
  Dataset filter(RecordFilter filter) const;
  // Shuffles each `size` consecutive positions among themselves, for data best read nearly in order.
  Dataset shuffle_window(ShuffleWindowOptions options) const;
  // Shuffles without an index: the shards, several of which are read at a time, and then the records within
  // windows. The order depends on the seed and the list of shards alone, and gives every record once an epoch.
  // REQUIRES: a source of shards that is not indexed (SourceOptions::indexed), and no stage before it that chooses
  // or orders.
  Dataset shuffle_shards(ShuffleShardsOptions options = {}) const;
  // Shuffles blocks of consecutive positions, and the positions within groups of these, for data on a disk or
  // behind a network: nearly as mixed as by shuffle(), also where equal classes lie together, but read in long
  // runs. O(1). Where blocks begin differs from pass to pass.
  Dataset shuffle_blocks(ShuffleBlocksOptions options = {}) const;
  // Adds a field, i64, with the zero-based position at which the stage stands: of the records that the stages
  // before it leave, in their order. Before shuffle() it is a number of the record, after it the position in the
  // epoch. Neither shuffled nor repeated records may be numbered before cache().
  Dataset enumerate(EnumerateOptions options = {}) const;
  // Takes one worker's part. Parts are disjoint and complete; sharding by file may make them unequal.
  Dataset shard_for_worker(WorkerShard shard) const;
  // After batch(), undoes it: what follows counts records again, in the order of the batches. Before it, splits a
  // record of N equal samples (N is the first extent of every field) into N records.
  Dataset unbatch() const;
  // Makes a record of each `size` consecutive ones, every `shift` records; see WindowOptions. No stage before it
  // may shuffle, decode, map or cache: do so with its result.
  Dataset window(WindowOptions options) const;
  // Keeps each sample as the stages before it leave it. A plan may have several, each with its own SampleCache.
  Dataset cache(std::shared_ptr<SampleCache> cache) const;
  Dataset batch(BatchOptions options) const;
  // Batches records whose raw fields differ in their first extent: each is padded at its end to one length, the
  // same for all batches, and a field `<name>_length`, i64, holds the original length, or what is left of it
  // where lost boxes are dropped (Along). A longer record is bad, like one that cannot be read, for
  // LoaderOptions::errors to handle. Of a stream each length must be given.
  Dataset padded_batch(PaddedBatchOptions options) const;
  // Batches samples whose fields differ in their first extent, without padding, as tf.data's ragged_batch: a batch
  // holds the entries of all rows one after another, and a field `<name>_offsets`, i64, says where each row
  // begins, from 0 in every replica's part (Batch::ragged()). A sample longer than the maximum is bad, like one
  // that cannot be read. A batch reserves memory for all rows at the maximum length; only actual entries are
  // copied to devices. REQUIRES: neither mixup() nor cutmix() follows. The trainer refuses such plans.
  Dataset ragged_batch(RaggedBatchOptions options) const;
  // Batches records of similar length, as tf.data's bucket_by_sequence_length: batches of one loader have several
  // shapes. Lengths are read once, when the plan is first counted or opened, as records are for filter(). A batch
  // comes where its last example arrives, and the smaller last batches of the buckets, in their order, at the end
  // of the epoch; for that each epoch first looks at the numbers of all records, and keeps 4 bytes for each. Adds
  // `<name>_length` as padded_batch() does. Neither unbatch(), mixup() nor cutmix() may follow, nor a trainer.
  Dataset bucket_by_length(BucketOptions options) const;
  Dataset prefetch(int batches) const;  // batches in flight ahead of the consumer
  // Returns the plan with the stage that a plan's JSON calls `name` (pipeline/PLAN.md), with options as there,
  // `{"seed": 7}`, and the code of `parts` that they name. Throws ConfigError naming the place, as `shuffle.seed`.
  Dataset with_stage(std::string_view name, std::string_view options = {}, const PlanParts& parts = {}) const;

  // Returns the plan after push-down, one stage per line. Throws ConfigError if the plan is invalid.
  std::string explain() const;
  // Returns it for these devices, with the operations that they perform themselves, whether they keep the samples
  // of a run of several epochs and decode JPEGs, and why or why not.
  std::string explain(const DeviceGroup& devices, ConvertAt at = ConvertAt::kAuto,
                      Residency resident = Residency::kAuto, ConvertAt decode = ConvertAt::kAuto) const;

  // Returns whether the source is a stream, of unknown length.
  bool streamed() const;
  // Returns whether there is one epoch only: of a stream that cannot be read again.
  bool one_pass() const;
  // Returns the number of records in one epoch; if batches are combined or stages choose them, of those batches
  // (after a shuffle, of the first epoch's). Like steps_per_epoch(), throws ConfigError for a stream.
  std::uint64_t size() const;
  // Returns whether batches differ in shape: after bucket_by_length().
  bool has_buckets() const;
  // Returns whether batches have fields of varying length: after ragged_batch().
  bool is_ragged() const;
  // Returns the number of batches in one epoch. Throws ConfigError before .batch().
  std::uint64_t steps_per_epoch() const;
  // Returns the fields of one sample after all operations. After bucket_by_length() and ragged_batch() the first
  // extent of some is dynamic: a batch's tensors have it.
  Fields fields() const;
  // Returns the class names, if the source has them.
  std::vector<std::string> classes() const;
  // Returns in one line how the source was read: describe_reading().
  std::string reading() const;
  // Returns the source that numbers the records: of a combination all parts' records, after unbatch() samples. If
  // the parts were decoded or mapped, its fields are those of the result, but read() gives what the parts' sources
  // hold.
  SourcePtr source() const;
  // Returns the fields of the records that the plan reads, before any stage; of a combination, those of its first
  // part.
  Fields source_fields() const;
  std::vector<SourceColumn> columns() const;  // of the source, taken and left out
  // Returns the number of examples in a global batch, of buckets and of combined batches in the largest. Throws
  // ConfigError before .batch().
  std::int64_t global_batch() const;
  // Returns the plan as JSON: sources with their paths as given, stages and all their options; pipeline/PLAN.md is
  // the format. Throws ConfigError naming the stage if one is code that `parts` does not hold: a custom operation
  // or filter of that name and version, a source of that fingerprint.
  std::string to_json(const PlanParts& parts = {}) const;
  // Returns the plan of such a text and opens its sources. If the data are the same, the plan's fingerprint and
  // stream of batches are those of the original. Throws ConfigError naming the place, as
  // `stages[3].map[1].flip.probability`, if the text is not such a plan; DataError if the data cannot be opened.
  static Dataset from_json(std::string_view text, const PlanOptions& options = {});
  // Returns, as JSON, the plan that evaluates a model trained by this one. Its source is {"named": "data"}:
  // PlanOptions::data supplies it. It keeps what is done to every record alike (decode(), unbatch(), filters by
  // label, non-random operations) and the batch, with the last part of an epoch. It drops what chooses or orders
  // records (take(), shard(), shuffle() ...), caches, and random operations that leave type and size of their
  // field unchanged. Its decode() states the images' size if known, and is also there for colour images that the
  // source holds as pixels. Throws ConfigError, naming the stage, if there is no such plan: for code, for a random
  // operation that changes the size, such as random_resized_crop(), and for zip().
  std::string evaluation_json() const;

  // Returns the stream's identity: source, operations with versions and parameters, decoder. It excludes thread
  // counts and which records a filter could not judge; a LoaderState covers those records, too.
  std::uint64_t fingerprint() const;

  const PlanPtr& plan() const noexcept { return plan_; }
  // Wraps `plan`, for callers who build plans themselves.
  explicit Dataset(PlanPtr plan) : plan_(std::move(plan)) {}

 private:
  PlanPtr plan_;
};

// Functions that combine several datasets into one. They may be sharded, shuffled, filtered, repeated, decoded,
// mapped, cached and themselves combined. A cache of a part saves its decoding and mapping; its records are read
// nevertheless.
//
// If all are batched, whole batches are combined in the way of records: each batch is one of one dataset, so that
// they may differ in size, and stages after the combination are stages after batch(). If some batches are smaller,
// each pass of an unbatch() first looks at the numbers of all.
//
// Each of these throws ConfigError if no dataset is given, if some are batched and others are not, if one has
// bucket_by_length(), ragged_batch(), mixup() or cutmix(), and, except for zip(), if fields or class names differ.
// Records of the result are numbered part after part, so that random operations treat equal records of two parts
// differently.

// Joins the datasets one after the other. An epoch has every record of each once.
Dataset concatenate(const std::vector<Dataset>& parts);

struct InterleaveOptions {
  std::uint64_t block = 1;
  void each_field(OptionVisitor& visit) {
    visit("block", block, "Records, or batches, of one dataset before the turn of the next.");
  }
};
// Takes the datasets in turn and passes over those that have ended. An epoch has every record of each once.
Dataset interleave(const std::vector<Dataset>& parts, InterleaveOptions options = {});

enum class MixEnd {
  kFirstEnds,  // ends the epoch when the first dataset would have to start again: every record at most once
  kAllSeen,    // ends it when every dataset was given whole: every record at least once, smaller ones start again
};

constexpr std::array<const char*, 2> choice_names(MixEnd /*of*/) { return {"first_ends", "all_seen"}; }

struct MixOptions {
  std::vector<double> weights = {};
  std::uint64_t seed = 0;
  MixEnd end = MixEnd::kFirstEnds;
  void each_field(OptionVisitor& visit) {
    visit("weights", weights,
          "Relative frequency of each dataset's turns. Empty: as often as it has records, or batches, so that the "
          "epoch has every one of each exactly once, and `end` does not matter.");
    visit("seed", seed, "Mixed with the loader's seed.");
    visit("end", end, "What ends an epoch.");
  }
};
// Merges the datasets at random, anew every epoch, keeping each one's order. The proportions are exact over the
// epoch, not only expected: of an epoch of L records, L * weight / sum, rounded, belong to a dataset.
Dataset mix(const std::vector<Dataset>& parts, MixOptions options = {});

struct ZipOptions {
  std::vector<std::string> suffixes = {};
  bool strict = true;
  void each_field(OptionVisitor& visit) {
    visit("suffixes", suffixes,
          "Appended to field names that several datasets have, one suffix per dataset. Empty: such names are an "
          "error.");
    visit("strict", strict,
          "The datasets must be equally long, and images of files that stand side by side must be named alike: "
          "\"7.jpg\" and \"7_mask.png\". False: pairs by position alone and ends with the shortest.");
  }
};
// Gives record i the fields of every dataset's record i. No dataset may be shuffled: shuffle the result. Filtered
// datasets are counted now. A record that a filter could not judge is bad, and so is the combined record that has
// its fields. Of batched datasets, batch n has the rows of every dataset's batch n: throws ConfigError if they
// differ in number, or if one smaller than the first is not the last.
Dataset zip(const std::vector<Dataset>& parts, ZipOptions options = {});
// Returns the combination that a plan's JSON calls `how`, "mix", with options as there but without parts. Throws
// ConfigError naming the place, as `mix.weights`.
Dataset combine(std::string_view how, const std::vector<Dataset>& parts, std::string_view options = {});

}  // namespace headrace
