// The part of a plan that applies to other data, to evaluate a model trained with it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {

// Throw ConfigError: the plan has no such part, because of one of its stages.
[[noreturn]] void refuse_stage(const std::string& why);
[[noreturn]] void refuse_code(const std::string& what);

// The stages that Dataset::evaluation_json() writes, in order, without a source, as they grow: each stage of the
// plan adds what it does to every record alike. An unbatch() of records stands among them, a padded_batch() has
// the lengths that were found.
class EvaluationStages {
 public:
  // Throws ConfigError if there are no such stages.
  explicit EvaluationStages(const PlanPtr& plan);

  const std::vector<StagePtr>& kept() const noexcept { return kept_; }
  // Returns the fields that the stages so far leave.
  Fields& fields() noexcept { return fields_; }

  void keep(StagePtr stage) { kept_.push_back(std::move(stage)); }
  void keep_decode(const DecodeOptions& options);
  void keep_batch(StagePtr stage, bool padded);
  // Drops the last batch(), unless it is a padded_batch(), which has changed the records: then keeps `unbatch`.
  void undo_batch(StagePtr unbatch);
  // Applies an operation to fields() unless it draws random numbers, and returns whether it did: it is then kept.
  // Throws ConfigError if an evaluation cannot do without it.
  bool keep_operation(const Operation& operation);
  // Returns the fields of varying length, padded to the lengths that were found; `given`: those of padded_batch().
  std::vector<PadField> padding(const std::vector<PadField>& given) const;

 private:
  void begin(const PlanSource& source);
  void leave_out(const Operation& operation);
  bool tell_size(const Shape& shape);

  std::vector<StagePtr> kept_;
  Fields fields_, unpadded_;
  std::size_t decode_ = 0, batch_ = 0;  // where in kept_ they stand
  bool padded_ = false;                 // whether that batch is padded
  DecodeOptions decode_options_;
  bool as_decoded_ = false;  // nothing was done to the images since
};

}  // namespace headrace
