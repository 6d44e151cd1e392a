// Model::fit() in two parts: what has to be made and recorded first, then the training itself. For who wants to
// time the training alone, or to start it at a given moment.
//
//   PreparedFit fit(model, train, {.epochs = 8});
//   fit.warm_up();
//   ... the clock starts ...
//   History history = fit.run();
#pragma once

#include <memory>

#include "headrace/pipeline/dataset.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/history.h"

namespace headrace {

class Model;

// The model's variables may be written in between; compile() makes it useless, which run() says. One thread.
class PreparedFit {
 public:
  // Starts the input engine, which reads ahead, and records the steps. Errors are those of fit(). The model must
  // outlive it.
  PreparedFit(Model& model, const Dataset& train, const FitOptions& options = {});
  ~PreparedFit();
  PreparedFit(const PreparedFit&) = delete;
  PreparedFit& operator=(const PreparedFit&) = delete;

  // Every recorded step, those of the validation too, is run once with no examples: a GPU loads a kernel when it
  // is first used. Changes no result.
  void warm_up();

  // Once: a second call is a ConfigError.
  History run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
