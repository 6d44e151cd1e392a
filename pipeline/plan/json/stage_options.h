// The options of stages whose calls take plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/dataset.h"

namespace headrace::plan_json {

struct NoOptions {
  void each_field(OptionVisitor& /*visit*/) {}
};
struct RecordCount {
  std::uint64_t count = 0;

  void each_field(OptionVisitor& visit) { visit("count", count, "How many records, or batches after batch()."); }
};
struct ChosenRecords {
  std::vector<std::uint64_t> numbers = {};

  void each_field(OptionVisitor& visit) {
    visit("numbers", numbers, "The records' numbers, in the order wanted.");
  }
};
struct Passes {
  std::int64_t times = 1;

  void each_field(OptionVisitor& visit) { visit("times", times, "How often an epoch has each record."); }
};
struct ShardOf {
  std::uint64_t count = 1, index = 0;

  void each_field(OptionVisitor& visit) {
    visit("count", count, "The number of shards.");
    visit("index", index, "This shard's number, from 0.");
  }
};
struct BatchesAhead {
  int batches = 2;

  void each_field(OptionVisitor& visit) { visit("batches", batches, "How many batches are made ahead."); }
};
struct MemoryBudget {
  std::uint64_t budget_bytes = 0;

  void each_field(OptionVisitor& visit) {
    visit("budget_bytes", budget_bytes, "The maximum that it keeps, in bytes; 0: no limit.");
  }
};
struct CacheFolder {
  std::filesystem::path folder = {};
  DiskCacheOptions options = {};

  void each_field(OptionVisitor& visit) {
    visit("folder", folder, "Where it is kept.");
    visit("budget_bytes", options.budget_bytes, "The maximum that it keeps, in bytes; 0: no limit.");
    visit("segment_bytes", options.segment_bytes, "The size of each of its files.");
  }
};
// The options of with_labels().
struct LabelOptions {
  std::vector<std::int64_t> labels = {};
  RecordFilter filter = {};  // without its function

  void each_field(OptionVisitor& visit) {
    visit("labels", labels, "Records with these labels are kept.");
    filter.each_field(visit);
  }
};

}  // namespace headrace::plan_json
