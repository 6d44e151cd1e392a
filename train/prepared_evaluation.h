// Model::evaluate() in two parts: preparation and recording, then the passes over the data.
#pragma once

#include <memory>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/fit_options.h"

namespace HEADRACE_API headrace {

class Model;

// The model may be trained in between, but not compiled again. One thread.
class PreparedEvaluation {
 public:
  // Starts the input engine, which reads ahead, and records the passes. Errors are those of evaluate(). The model
  // must outlive it.
  PreparedEvaluation(Model& model, const Dataset& data, const EvaluateOptions& options = {});
  ~PreparedEvaluation();
  PreparedEvaluation(const PreparedEvaluation&) = delete;
  PreparedEvaluation& operator=(const PreparedEvaluation&) = delete;

  // As PreparedFit::warm_up().
  void warm_up();

  // With the variables as they are now. Once: a second call is a ConfigError.
  Evaluation run();

 private:
  class HEADRACE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
