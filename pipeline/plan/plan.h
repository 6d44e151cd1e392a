// The representation of a Dataset: a chain of stages, newest first, shared by the datasets derived from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"

namespace headrace {

struct StreamPlan;
class LengthBuckets;
class RaggedBatch;

// One of several combined datasets that were decoded, mapped or cached before.
struct ProcessedPart {
  std::shared_ptr<const StreamPlan> plan;  // what is done to its records; its index stages are the combination's
  std::uint64_t first_record = 0;          // in the combined source; not of zip()
  std::size_t first_field = 0;             // of zip(): in the combined record
  // Of zip(): the record of the part's source. Null: the one of the combination's number.
  std::function<std::uint64_t(std::uint64_t)> record_at = {};
  // Of zip(): writes the numbers of the part's enumerate() stages. Null: it has none.
  std::function<void(std::uint64_t, std::uint64_t*)> write_numbers = {};
};

// The datasets whose records are joined field by field.
struct Zipped {
  std::vector<PlanPtr> parts;
  ZipOptions options;
  std::vector<ProcessedPart> processed = {};  // one a part; empty: all are as their sources hold them
  std::optional<BatchOptions> batch = {};     // if whole batches are joined, those of the result
  int prefetch = 2;                           // then of the parts: the most
};
// The dataset whose records are put together.
struct Windowed {
  PlanPtr plan;
  WindowOptions options;
};
struct SourceStage {
  SourcePtr source;  // of processed parts: its fields are those of samples, its bytes the parts'
  // The source's origin, for writing the plan:
  std::shared_ptr<const Zipped> zipped = {};      // by zip(); else null
  std::shared_ptr<const Windowed> windowed = {};  // by window(); else null
  SourcePtr unpadded = {};                        // the source that padded_batch() pads; else null
  bool processed = false;                         // whether its parts are decoded, mapped or cached before
};
struct MapStage {
  std::vector<Operation> operations;
};
struct ShuffleStage {
  ShuffleOptions options;
};
struct RepeatStage {
  std::uint64_t times = 1;
};
struct TakeStage {
  std::uint64_t count = 0;
};
struct SkipStage {
  std::uint64_t count = 0;
};
class ChosenNumbers;
struct SelectStage {
  std::shared_ptr<const ChosenNumbers> chosen;
  // Whether a repeated record gets new random numbers; set by the planner. Stages before it that shuffle would
  // otherwise find another record.
  bool draws_anew = false;
};
struct ShardStage {
  std::uint64_t count = 1;
  std::uint64_t index = 0;
};
struct WithoutShardStage {
  std::uint64_t count = 2;
  std::uint64_t index = 0;
};
class Selection;
struct FilterStage {
  std::shared_ptr<const Selection> selection;
};
struct ShuffleWindowStage {
  ShuffleWindowOptions options;
};
// The records of some files of the source: `ranges` are [first, end) of each, in order.
struct ShardFilesStage {
  std::uint64_t count = 1;
  std::uint64_t index = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
};
// Adds a field with the position at which it stands.
struct EnumerateStage {
  EnumerateOptions options;
  std::size_t place = 0;  // of its number among those of all such stages of the plan; set by the planner
};
// A combination is always the first index stage: the plan's source holds the records of all parts.
struct Combination;
struct CombineStage {
  std::shared_ptr<const Combination> combination;
};
struct CacheStage {
  std::shared_ptr<SampleCache> cache;
};
struct BatchStage {
  BatchOptions options;
  std::optional<std::vector<PadField>> pad = {};  // as given to padded_batch(); std::nullopt: it is a batch()
  // Of bucket_by_length(), whose largest batch the options state; else null.
  std::shared_ptr<const LengthBuckets> buckets = {};
  std::shared_ptr<const RaggedBatch> ragged = {};  // of ragged_batch(); else null
};
// Finds the bucket of a record. Only the planner makes it.
struct BucketStage {
  std::shared_ptr<const LengthBuckets> buckets;
  std::size_t place = 0;  // of its number among those of enumerate() stages
};
struct PrefetchStage {
  int batches = 2;
};
// Undoes the batch() before it.
struct UnbatchStage {};
// batch(), stages on its batches, and unbatch(): an order of records. Only the planner makes it.
struct BatchOrder;
struct BatchOrderStage {
  std::shared_ptr<const BatchOrder> order;
};

using Stage = std::variant<SourceStage, DecodeStage, MapStage, ShuffleStage, RepeatStage, TakeStage, SkipStage,
                           SelectStage, ShardStage, WithoutShardStage, FilterStage, ShuffleWindowStage,
                           ShardFilesStage, CombineStage, EnumerateStage, CacheStage, BatchStage, BucketStage,
                           PrefetchStage, UnbatchStage, BatchOrderStage>;

// The batches of a dataset whose batches are combined.
struct PartBatches {
  BatchOptions options;                              // of combined batches: of the largest
  std::vector<Stage> stages;                         // index stages on their numbers
  std::shared_ptr<const Combination> combined = {};  // if they are themselves combined; else null
  int prefetch = 2;
};

// One of the datasets that were combined.
struct CombinedPart {
  std::string name;                         // of its source
  std::uint64_t records = 0;                // of its source
  std::uint64_t first_record = 0;           // of the part, in the combined source
  std::vector<Stage> stages;                // its index stages
  PlanPtr plan = {};                        // as written
  std::optional<PartBatches> batches = {};  // std::nullopt: its records are combined
};

// Each record of the only part holds `rows` samples.
struct UnbatchRows {
  std::uint64_t rows = 1;
};
struct InSequence {};

struct Combination {
  std::variant<InSequence, InterleaveOptions, MixOptions, UnbatchRows> how;
  std::vector<CombinedPart> parts;
  std::vector<ProcessedPart> processed = {};  // one a part; empty: all are as their sources hold them

  // Returns whether whole batches are combined. Then the records stand part after part, and `how` orders batches.
  bool of_batches() const noexcept { return !parts.empty() && parts.front().batches.has_value(); }
};

struct BatchOrder {
  BatchOptions batch;
  std::vector<Stage> stages;                         // on batch numbers
  std::shared_ptr<const Combination> combined = {};  // whose batches they are; null: those of `batch`
};

// Immutable. The first node of a chain holds a SourceStage and no other does.
struct PlanNode {
  PlanPtr before;
  Stage stage;
};

// Returns the stages in the order written, the source first.
std::vector<Stage> stages_of(const PlanPtr& plan);

// Returns a stage as explain() shows it and as fingerprints include it: "shuffle(seed=7)".
std::string describe(const Stage& stage);

// Returns whether the record at a position of the stage depends on the seed or the epoch.
bool is_shuffled(const Stage& stage);
// Returns whether this is so for any of them.
bool is_shuffled(const std::vector<Stage>& stages);

// The function of with_labels(): a filter defined by data.
struct LabelFilter {
  std::vector<std::int64_t> labels;  // sorted

  bool operator()(const ExampleView& record) const;
};

}  // namespace headrace
