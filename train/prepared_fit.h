// Model::fit() in two parts: preparation and recording, then the training itself. For callers who time the
// training alone, or start it at a given moment.
//
//   PreparedFit fit(model, train, {.epochs = 8});
//   fit.warm_up();
//   ... the clock starts ...
//   History history = fit.run();
#pragma once

#include <memory>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/history.h"

namespace HEADRACE_API headrace {

class Model;

// The model's variables may be written in between; after compile() run() refuses. One thread.
class PreparedFit {
 public:
  // Starts the input engine, which reads ahead, and records the steps. Errors are those of fit(). The model must
  // outlive it.
  PreparedFit(Model& model, const Dataset& train, const FitOptions& options = {});
  ~PreparedFit();
  PreparedFit(const PreparedFit&) = delete;
  PreparedFit& operator=(const PreparedFit&) = delete;

  // Runs every recorded step once without examples, the validation's too: a GPU loads a kernel on its first use.
  // Changes no result.
  void warm_up();

  // Of a fit that is continued (FitOptions::resume), before run(): the epochs that were made before. Else empty.
  const History& history() const noexcept;

  // Once: a second call is a ConfigError.
  History run();

 private:
  class HEADRACE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
