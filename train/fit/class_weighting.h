// The class weights of a single fit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/train/model.h"

namespace headrace {

// While one lives, the model's compiled loss has these class weights; afterwards it is what it was, unless the
// model has been compiled again.
class ClassWeighting {
 public:
  // Does nothing if there are no weights. Throws ConfigError if the loss has several terms.
  ClassWeighting(Model& model, const std::vector<float>& weights);
  ~ClassWeighting();
  ClassWeighting(const ClassWeighting&) = delete;
  ClassWeighting& operator=(const ClassWeighting&) = delete;

 private:
  ModelState& model_;
  std::uint64_t compilation_;
  std::optional<Loss> before_;
};

}  // namespace headrace
