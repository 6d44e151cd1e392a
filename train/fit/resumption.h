// The saved training from which a fit continues.
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
  // The work of a fit, besides its model and options.
  struct Work {
    std::uint64_t steps;  // per epoch
    const DataIdentity& data;
    const std::optional<DataIdentity>& validation;
  };
  // See FitOptions::resume.
  Resumption(Model& model, const FitOptions& options, const Work& work);

  bool continues() const noexcept { return state_ != nullptr; }
  // Return a new training's values if the fit does not continue one.
  TrainingPosition position() const;
  std::optional<LoaderState> loader() const;
  std::optional<LoaderState> validation() const;
  History history() const;

  // Restores the saved state into the model if the fit continues one and it is not restored already.
  void restore(ModelState& model) const;
  // Warns if plans differ from the saved ones. Call after the first step of a continued training.
  void compare_plans(const std::map<std::string, std::string>& plans, const FitOptions& options) const;
  const std::string& callbacks() const noexcept { return state_->callbacks; }
  const std::vector<std::vector<std::byte>>& totals() const noexcept { return state_->totals; }

 private:
  void find(Model& model, const FitOptions& options);
  void find_newest(const FitOptions& options);
  // Throws ConfigError naming all differences that change the result.
  void check(const ModelState& model, const FitOptions& options, const Work& work) const;

  std::optional<Record> record_;  // the newest checkpoint, if the model is not restored yet
  std::shared_ptr<const TrainingState> state_;
};

}  // namespace headrace
