// How data are read that are evaluated or predicted.
#pragma once

#include "headrace/pipeline/loader.h"
#include "headrace/train/engine/storage_types.h"
#include "headrace/train/fit_options.h"

namespace headrace {

inline LoaderOptions loader_options(const ModelState& model, Mode mode, const EvaluateOptions& options) {
  LoaderOptions loader;
  loader.converted = converted_type(model, mode);
  loader.seed = options.seed;
  loader.threads = options.threads;
  loader.prefetch = options.prefetch;
  loader.errors = options.errors;
  return loader;
}

}  // namespace headrace
