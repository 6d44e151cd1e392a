// Shows the options of a plan's stages and combinations to visitors; the only source for reader and writer.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/dataset.h"

namespace headrace::plan_json {

// The options of stages that take plain numbers.
struct NoOptions {};
struct RecordCount {
  std::uint64_t count = 0;
};
struct ChosenRecords {
  std::vector<std::uint64_t> numbers = {};
};
struct Passes {
  std::int64_t times = 1;
};
struct ShardOf {
  std::uint64_t count = 1, index = 0;
};
struct BatchesAhead {
  int batches = 2;
};
struct MemoryBudget {
  std::uint64_t budget_bytes = 0;
};
struct CacheFolder {
  std::filesystem::path folder = {};
  DiskCacheOptions options = {};
};
// The options of with_labels().
struct LabelOptions {
  std::vector<std::int64_t> labels = {};
  RecordFilter filter = {};  // without its function
};

inline void show(NoOptions& /*options*/, OptionVisitor& /*visit*/) {}
inline void show(RecordCount& options, OptionVisitor& visit) { visit("count", options.count); }
inline void show(ChosenRecords& options, OptionVisitor& visit) { visit("numbers", options.numbers); }
inline void show(Passes& options, OptionVisitor& visit) { visit("times", options.times); }
inline void show(ShardOf& options, OptionVisitor& visit) {
  visit("count", options.count);
  visit("index", options.index);
}
inline void show(BatchesAhead& options, OptionVisitor& visit) { visit("batches", options.batches); }
inline void show(MemoryBudget& options, OptionVisitor& visit) { visit("budget_bytes", options.budget_bytes); }
inline void show(CacheFolder& cache, OptionVisitor& visit) {
  visit("folder", cache.folder);
  visit("budget_bytes", cache.options.budget_bytes);
  visit("segment_bytes", cache.options.segment_bytes);
}
inline void show(DecodeOptions& options, OptionVisitor& visit) {
  visit("height", options.height);
  visit("width", options.width);
  visit("apply_orientation", options.apply_orientation);
}
inline void show(ShuffleOptions& options, OptionVisitor& visit) {
  visit("seed", options.seed);
  visit("each_epoch_anew", options.each_epoch_anew);
}
inline void show(ShuffleWindowOptions& options, OptionVisitor& visit) {
  visit("size", options.size);
  visit("seed", options.seed);
  visit("each_epoch_anew", options.each_epoch_anew);
}
inline void show(WorkerShard& options, OptionVisitor& visit) {
  visit("count", options.count);
  visit("index", options.index);
  visit("by", options.by, {"auto", "file", "element"});
}
inline void show_remainder(Remainder& remainder, OptionVisitor& visit) {
  visit("remainder", remainder, {"keep", "drop"});
}
inline void show(BatchOptions& options, OptionVisitor& visit) {
  visit("global", options.global);
  show_remainder(options.remainder, visit);
}
inline void show(EnumerateOptions& options, OptionVisitor& visit) { visit("field", options.field); }
inline void show(WindowOptions& options, OptionVisitor& visit) {
  visit("size", options.size);
  visit("shift", options.shift);
  show_remainder(options.remainder, visit);
}
inline void show_pad(PadField& pad, OptionVisitor& visit) {
  visit("field", pad.field);
  visit("length", pad.length);
  auto value = std::to_integer<std::uint8_t>(pad.value);
  visit("value", value);
  pad.value = std::byte{value};
}
inline void show(PaddedBatchOptions& options, OptionVisitor& visit) {
  visit("global", options.global);
  show_remainder(options.remainder, visit);
  visit("pad", options.pad, show_pad);
}
inline void show_ragged(RaggedField& field, OptionVisitor& visit) {
  visit("field", field.field);
  visit("max_length", field.max_length);
}
inline void show(RaggedBatchOptions& options, OptionVisitor& visit) {
  visit("global", options.global);
  show_remainder(options.remainder, visit);
  visit("fields", options.fields, show_ragged);
}
inline void show(BucketOptions& options, OptionVisitor& visit) {
  visit("field", options.field);
  visit("boundaries", options.boundaries);
  visit("batch_sizes", options.batch_sizes);
  visit("max_length", options.max_length);
  show_remainder(options.remainder, visit);
  visit("pad", options.pad, show_pad);
}
inline void show(LabelOptions& options, OptionVisitor& visit) {
  visit("labels", options.labels);
  visit("name", options.filter.name);
  visit("version", options.filter.version);
  visit("processed", options.filter.processed);
  visit("stall_timeout_seconds", options.filter.stall_timeout_seconds);
  visit("max_failures", options.filter.max_failures);
}
inline void show(InterleaveOptions& options, OptionVisitor& visit) { visit("block", options.block); }
inline void show(MixOptions& options, OptionVisitor& visit) {
  visit("weights", options.weights);
  visit("seed", options.seed);
  visit("end", options.end, {"first_ends", "all_seen"});
}
inline void show(ZipOptions& options, OptionVisitor& visit) {
  visit("suffixes", options.suffixes);
  visit("strict", options.strict);
}

}  // namespace headrace::plan_json
