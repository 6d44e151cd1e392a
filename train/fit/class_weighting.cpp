#include "headrace/train/fit/class_weighting.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/model/model_state.h"

namespace headrace {

ClassWeighting::ClassWeighting(Model& model, const std::vector<float>& weights)
    : model_(model.state()), compilation_(model.state().compilations) {
  if (weights.empty()) return;
  const Loss& loss = model_.require_compiled("class weights").loss;
  if (loss.terms.size() > 1) {
    throw ConfigError("class weights are given to a fit, but the model's loss has several terms",
                      "give each term of the loss its class weights in compile()");
  }
  Loss weighted = loss.class_weighted(weights);
  before_ = std::exchange(model_.compiled->loss, std::move(weighted));
}

ClassWeighting::~ClassWeighting() {
  if (before_ && model_.compilations == compilation_) model_.compiled->loss = *before_;
}

}  // namespace headrace
