// batch(), stages on its batches, and unbatch(), as one index stage: whole batches of records change places.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/pipeline/plan/combination.h"
#include "headrace/pipeline/plan/index/batch_rows.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {

// Returns the index of the stages after a batch(): (epoch, step) -> (batch, pass).
IndexMap batch_map(std::uint64_t batches, const std::vector<StagePtr>& stages, std::uint64_t seed);

// Returns the examples of an epoch of such batches; if they are chosen after a shuffle, of the first epoch. Looks
// at each batch's number if one of them is smaller.
std::uint64_t count_examples(const BatchRows& rows, const std::vector<StagePtr>& stages, std::uint64_t seed);

// Only the planner makes it, from what stands before unbatch().
class BatchOrderStage final : public Stage {
 public:
  // `stages` are those on batch numbers; `combined` has the batches, null: they are those of `batch`.
  BatchOrderStage(BatchOptions batch, std::vector<StagePtr> stages, std::shared_ptr<const Combination> combined)
      : batch_(batch), stages_(std::move(stages)), combined_(std::move(combined)) {}

  std::string describe() const override;
  StageTraits traits() const override;
  // Throws ConfigError if a smaller batch is among the chosen ones in some epochs only, so that they differ in
  // length.
  Indexed index(const StageInput& before) const override;
  std::string cost() const override;

 private:
  BatchOptions batch_;
  std::vector<StagePtr> stages_;
  std::shared_ptr<const Combination> combined_;
};

}  // namespace headrace
