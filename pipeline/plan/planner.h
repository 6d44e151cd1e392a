// Turns the stages as written into the plan that the engine runs.
#pragma once

#include <cstddef>
#include <string>

#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {

// A plan as it grows, to which each stage adds itself.
class PlanBuilder {
 public:
  // Throws ConfigError if the source's fields make no plan.
  explicit PlanBuilder(const PlanSource& source);

  // Returns the plan of the stages so far.
  StreamPlan& plan() noexcept { return plan_; }

  // Throws ConfigError if the source is a stream.
  void want_numbers(const std::string& stage) const { refuse_stream(*plan_.source, stage); }
  // Throws ConfigError if the examples of a batch have been mixed: `stage` works on single ones.
  void want_before_mixing(const std::string& stage) const;
  // Throws ConfigError if an operation before `stage`, whose result is made once, is random.
  void want_nothing_random(const std::string& stage) const { want_nothing_random(stage, plan_); }

  // Adds a stage on positions: after batch(), of batches.
  void add_index_stage(StagePtr stage);
  // Adds an index stage before those of the records from `place` on.
  void insert_index_stage(std::size_t place, StagePtr stage);
  // Makes batches of what comes before `stage`.
  void begin_batches(const Stage& stage, const BatchOptions& options);
  // Adds an operation on samples or, if it is one, on batches.
  void add_operation(const Operation& operation);

  // Returns the finished plan. Throws ConfigError if a batch cannot hold its samples.
  StreamPlan finish();

 private:
  static void want_nothing_random(const std::string& stage, const StreamPlan& plan);
  void take_combination(const std::shared_ptr<const Combination>& combination);
  void take_parts(const std::vector<ProcessedPart>& parts, bool zipped);
  void want_batch(const Operation& mixing) const;
  void want_soft_labels(const Operation& operation) const;
  bool is_bucketed(const Field& field) const;
  bool is_ragged(const Field& field) const;
  void want_fixed_fields() const;

  StreamPlan plan_;
  bool processed_;  // whether the source's fields are those of processed parts
};

// Throws ConfigError, naming the stage and the reason, if the plan is invalid.
StreamPlan make_stream_plan(const PlanPtr& plan);

}  // namespace headrace
