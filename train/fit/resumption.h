// What a fit continues from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/record.h"
#include "headrace/train/records/training_state.h"

namespace headrace {

class Resumption {
 public:
  // What a fit is of beside its model and options.
  struct Work {
    std::uint64_t steps;  // of an epoch
    const DataIdentity& data;
    const std::optional<DataIdentity>& validation;
  };
  // As FitOptions::resume says.
  Resumption(Model& model, const FitOptions& options, const Work& work);

  bool continues() const noexcept { return state_ != nullptr; }
  // A new training's where it does not continue.
  TrainingPosition position() const;
  std::optional<LoaderState> loader() const;
  std::optional<LoaderState> validation() const;
  History history() const;

  // Where it continues: the model becomes what was saved, unless it is that already.
  void restore(ModelState& model) const;
  // After the first step of a continued training: warns of plans that are others than when it was saved.
  void compare_plans(const std::map<std::string, std::string>& plans, const FitOptions& options) const;
  const std::string& callbacks() const noexcept { return state_->callbacks; }
  const std::vector<std::vector<std::byte>>& totals() const noexcept { return state_->totals; }

 private:
  void find(Model& model, const FitOptions& options);
  // ConfigError naming all that differs and changes the result.
  void check(const ModelState& model, const FitOptions& options, const Work& work) const;

  std::optional<Record> record_;  // the newest checkpoint, where the model is not restored yet
  std::shared_ptr<const TrainingState> state_;
};

}  // namespace headrace
