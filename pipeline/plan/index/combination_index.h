// A combination of datasets as one index stage, the first of a plan.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "headrace/pipeline/plan/combination.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {

class CombineStage final : public Stage {
 public:
  explicit CombineStage(std::shared_ptr<const Combination> combination) : combination_(std::move(combination)) {}

  const Combination& combination() const noexcept { return *combination_; }

  std::string describe() const override;
  StageTraits traits() const override;
  // Throws ConfigError if a mix cannot be made.
  Indexed index(const StageInput& before) const override;
  void add_failures(FilterFailures& all) const override;

 private:
  std::shared_ptr<const Combination> combination_;
};

}  // namespace headrace
