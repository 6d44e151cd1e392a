// Start here. A Dataset is an immutable plan: every call returns a new one, nothing is read until a Loader
// runs it. Before batch(), what chooses and orders records (shuffle, repeat, take, skip, shard, filter) may stand
// anywhere among decode(), map() and cache(): the planner does it first, on record numbers. What a map() works on
// comes before it, and nothing random before a cache(). After batch() come mixup(), cutmix() and prefetch() alone.
#pragma once

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
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/source.h"

namespace HEADRACE_API headrace {

// Where the bytes of images become the numbers a net is fed with. The stream's bits are the same either way.
enum class ConvertAt {
  kAuto,    // on the device wherever it can, which sends fewer bytes to it
  kHost,    // by the engine's threads, always
  kDevice,  // on the device; ConfigError where it cannot
};

// Whether devices keep the samples that they are sent. The stream's bits are the same either way.
enum class Residency {
  // In runs of several epochs, or of one that repeats its records, on devices with memory of their own, where
  // nothing random is left to the host and a quarter of what is free on each device holds them.
  kAuto,
  kNever,   // every batch crosses the bus
  kAlways,  // kept, where all that is free holds them; ConfigError where they cannot be
};

// The fields of one example, as a filter sees them: valid during the call only.
class ExampleView {
 public:
  ExampleView(const Fields& fields, const RecordView& view) : fields_(&fields), view_(&view) {}
  // `shapes` are the fields' in this record.
  ExampleView(const Fields& fields, const RecordView& view, std::span<const Shape> shapes)
      : fields_(&fields), view_(&view), shapes_(shapes) {}

  // The field's bytes, as the source holds them (an image is still encoded) unless RecordFilter::processed.
  // ConfigError for an unknown name.
  std::span<const std::byte> bytes(const std::string& field) const;
  // Its shape in this record; of an encoded image the number of its bytes.
  Shape shape(const std::string& field) const;
  // The value of a raw scalar field of any integer type; ConfigError where it is none.
  std::int64_t integer(const std::string& field) const;
  std::int64_t label() const { return integer("label"); }

 private:
  const Fields* fields_;
  const RecordView* view_;
  std::span<const Shape> shapes_ = {};
};

// Must be pure and thread-safe: it is called once a record, in any order, when a plan is first counted or opened.
// A record that cannot be read, or on which it throws, stays in the stream as a bad one: the error is that of the
// batch it would be in, as ErrorPolicy says. A ConfigError that it throws is nobody's record: it is thrown at
// once, and so is running out of memory.
struct RecordFilter {
  std::string name = {};
  std::uint32_t version = 1;  // part of every fingerprint: change it with the function
  std::function<bool(const ExampleView&)> keeps = {};
  // It sees the fields as decode() and map() before it leave them, of which none may be random; else as the source
  // holds them. The pass over the records then decodes them once more, and what fails there is a record that could
  // not be judged.
  bool processed = false;
  // A call of it, or a read for it, that takes longer ends the pass with Error(kTimeout); 0: none does. No part of
  // a fingerprint.
  double stall_timeout_seconds = 120;
  // More records than these that cannot be read or judged end the pass with a DataError: what is known of each is
  // kept in memory, and so many are no single records' fault. No part of a fingerprint.
  std::uint64_t max_failures = 65536;
};

// For a program that has to look for signals. While it lives, its thread calls `look` about twenty times a second
// when it waits for a pass over all records: a filter's, which size() or a Loader's constructor may be the first
// to need, that of padded_batch() and from_json() of such a plan, or inspect_source()'s. What `look` throws ends
// the pass within a second and leaves the call that waited; a later one begins the pass again. The innermost poll
// of a thread counts; an empty `look` leaves the outer one in force. LoaderOptions::while_waiting is one for the
// constructor.
class ScanPoll {
 public:
  explicit ScanPoll(std::function<void()> look);
  ~ScanPoll();
  ScanPoll(const ScanPoll&) = delete;
  ScanPoll& operator=(const ScanPoll&) = delete;

  // Calls this thread's, if there is one.
  static void look();

 private:
  std::function<void()> look_;
  const std::function<void()>* outer_;
};

// Keeps the records whose label is one of these.
RecordFilter with_labels(std::vector<std::int64_t> labels);

// "filter(name, version 1)"
std::string describe(const RecordFilter& filter);

// What all images are known to measure, where it is known: from then on the plan counts on it, so that devices may
// crop and normalise, and keep, what was decoded. An image of another size is a bad record. 0 0: any size, unless
// batch() or an operation needs one: then that of the first image counts, in the order of the source's records
// whatever comes after. The plan reads that record whenever it is looked at; explain() names it. Images of a
// stream cannot be looked at beforehand. pipeline/decoders/README.md says which images are bad records, and what
// is only counted as a warning.
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
  std::int64_t global = 32;  // examples over the world's replicas
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

// What a plan's JSON cannot hold, because it is code, and what it calls it.
struct PlanParts {
  // In-memory arrays, generators, streams and the caller's own: `{"named": "my_data", "fingerprint": "..."}`.
  std::map<std::string, SourcePtr> sources = {};
  // user_map() and user_operation(), by the names they have: `{"named": "my_map", "version": 2}`.
  std::vector<Operations> operations = {};
  // By the names they have: `{"named": "my_filter", "version": 1}`.
  std::vector<RecordFilter> filters = {};
};

struct PlanOptions {
  PlanParts parts = {};
  std::filesystem::path base = {};  // where relative paths begin; empty: in the process's working folder
  // False: whatever names a path is a ConfigError, for a plan that comes from somebody who must not say which
  // files this process opens.
  bool allow_paths = true;
  // In place of the plan's own source, which is then not opened; a decode() is passed over where its images are
  // pixels already. Null: the plan's own.
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
  Dataset map(const Operations& operations) const;     // mixup() and cutmix() after .batch(), all others before
  Dataset shuffle(ShuffleOptions options = {}) const;  // a full-epoch permutation, O(1) memory
  Dataset repeat(std::int64_t times) const;            // an epoch becomes `times` passes, each shuffled again
  Dataset take(std::uint64_t count) const;
  Dataset skip(std::uint64_t count) const;
  Dataset shard(std::uint64_t count, std::uint64_t index) const;          // every count-th record from index on
  Dataset without_shard(std::uint64_t count, std::uint64_t index) const;  // all the others
  // Only the records it keeps. It sees them as the source holds them, wherever it stands among the stages, or,
  // where RecordFilter::processed says so, as the stages before it leave them. All are read once, in parallel,
  // when the plan is first counted or opened; from then on any position is known at once. Shuffles and repeats
  // before it are done after it. What cannot be read or judged is kept and counted: it is one of the stream's bad
  // records, for LoaderOptions::errors to deal with, up to RecordFilter::max_failures.
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

  // Whether its records are those of a stream: then it has one epoch, of unknown length.
  bool streamed() const;
  // Records in one epoch. Like steps_per_epoch() a ConfigError of a stream.
  std::uint64_t size() const;
  // Batches in one epoch; ConfigError before .batch().
  std::uint64_t steps_per_epoch() const;
  // Fields of one sample after all operations.
  Fields fields() const;
  // Class names where the source has them.
  std::vector<std::string> classes() const;
  // What lies there beside the records of its source.
  std::vector<LeftOut> left_out() const;
  // The source whose numbers its records have: of a combination all its parts' records, after unbatch() samples.
  SourcePtr source() const;
  std::vector<SourceColumn> columns() const;  // of the source, taken and left out
  // Examples in a global batch; ConfigError before .batch().
  std::int64_t global_batch() const;
  // The plan as JSON: sources with their paths as they were given, stages and all their options; pipeline/PLAN.md
  // is the format. ConfigError naming the stage where one is code that `parts` does not hold: a user's operation
  // or filter of that name and version, a source of that fingerprint.
  std::string to_json(const PlanParts& parts = {}) const;
  // The plan of such a text: where the data are the same, its fingerprint and its stream of batches are those of
  // the plan that was written. Opens its sources. ConfigError naming the place, as
  // `stages[3].map[1].flip.probability`, for a text that is no such plan; DataError for data that cannot be
  // opened.
  static Dataset from_json(std::string_view text, const PlanOptions& options = {});
  // The plan that evaluates what was trained by this one, as JSON without a source of its own, {"named": "data"}:
  // PlanOptions::data brings it. It has what is done to every record alike (decode(), unbatch(), filters by label,
  // operations that are not random) and the batch, with the last part of an epoch. It has nothing that chooses or
  // orders records (take(), shard(), shuffle() ...), no cache, and no random operation that leaves type and size
  // of its field as they are. Its decode() says the images' size where that is known, and stands there for colour
  // images that the source holds as pixels, too. ConfigError, naming the stage, where there is no such plan: for
  // code, for a random operation that makes another size, as random_resized_crop(), and for zip().
  std::string evaluation_json() const;

  // Identity of the stream: source, operations with versions and parameters, decoder. Not of thread counts, nor of
  // which records a filter could not judge: a LoaderState is of them, too.
  std::uint64_t fingerprint() const;

  const PlanPtr& plan() const noexcept { return plan_; }
  // A dataset of this plan, for those who build plans themselves.
  explicit Dataset(PlanPtr plan) : plan_(std::move(plan)) {}

 private:
  PlanPtr plan_;
};

// One dataset out of several. They may be sharded, shuffled, filtered, repeated and themselves combined, but are
// combined before decode() and map(): those are done to the result.
//
// Each of these throws ConfigError where no dataset is given, where one has stages that belong after the
// combination, and, but for zip(), where fields or class names differ. Records of the result are numbered part
// after part, so that random operations treat equal records of two parts differently.

// One after the other. Every record of each once in an epoch.
Dataset concatenate(const std::vector<Dataset>& parts);

struct InterleaveOptions {
  std::uint64_t block = 1;  // records of one dataset before the next one's turn
};
// In turn; one that has ended is passed over. Every record of each once in an epoch.
Dataset interleave(const std::vector<Dataset>& parts, InterleaveOptions options = {});

enum class MixEnd {
  kFirstEnds,  // the epoch ends where the first dataset would have to start again: every record at most once
  kAllSeen,    // when every dataset was given whole: every record at least once, smaller datasets start again
};

struct MixOptions {
  // How often each dataset has its turn, relative to the others. Empty: as often as it has records, so that the
  // epoch has every record of each exactly once, and `end` does not matter.
  std::vector<double> weights = {};
  std::uint64_t seed = 0;  // mixed with the loader's seed
  MixEnd end = MixEnd::kFirstEnds;
};
// A random merge that keeps each dataset's order, another one every epoch. The proportions are exact over the
// epoch, not only expected: of an epoch of L records, L * weight / sum, rounded, are a dataset's.
Dataset mix(const std::vector<Dataset>& parts, MixOptions options = {});

struct ZipOptions {
  // Added to the names of fields that occur in several datasets, one suffix a dataset. Empty: that is an error.
  std::vector<std::string> suffixes = {};
};
// Record i has the fields of every dataset's record i; it ends with the shortest. No dataset may be shuffled:
// shuffle the result. Those that are filtered are counted now. What a filter could not judge is bad, and with it
// the record that has its fields.
Dataset zip(const std::vector<Dataset>& parts, ZipOptions options = {});

}  // namespace headrace
