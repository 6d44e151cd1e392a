// Datasets that were put together, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "headrace/pipeline/plan/stage.h"

namespace headrace {

struct StreamPlan;

// One of several combined datasets that were decoded, mapped or cached before.
struct ProcessedPart {
  std::shared_ptr<const StreamPlan> plan;  // what is done to its records; its index stages are the combination's
  std::uint64_t first_record = 0;          // in the combined source; not of zip()
  std::size_t first_field = 0;             // of zip(): in the combined record
  // For zip(): returns the record of the part's source. Null: it has the combination's number.
  std::function<std::uint64_t(std::uint64_t)> record_at = {};
  // For zip(): writes the numbers of the part's enumerate() stages. Null: it has none.
  std::function<void(std::uint64_t, std::uint64_t*)> write_numbers = {};
};

// The datasets whose records are joined field by field.
struct Zipped {
  std::vector<PlanPtr> parts;
  ZipOptions options;
  std::vector<ProcessedPart> processed = {};  // one a part; empty: all are as their sources hold them
  std::optional<BatchOptions> batch = {};     // if whole batches are joined, those of the result
  int prefetch = 2;                           // then the maximum of the parts
};

// The dataset whose records are put together.
struct Windowed {
  PlanPtr plan;
  WindowOptions options;
};

// The batches of a dataset whose batches are combined.
struct PartBatches {
  BatchOptions options;                              // of combined batches: of the largest
  std::vector<StagePtr> stages;                      // index stages on their numbers
  std::shared_ptr<const Combination> combined = {};  // if they are themselves combined; else null
  int prefetch = 2;
};

// One of the datasets that were combined.
struct CombinedPart {
  std::string name;                         // of its source
  std::uint64_t records = 0;                // of its source
  std::uint64_t first_record = 0;           // of the part, in the combined source
  std::vector<StagePtr> stages;             // its index stages
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

}  // namespace headrace
