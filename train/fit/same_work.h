// Compares what the workers of a fit are about to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/workers.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/layers.h"
#include "headrace/train/model.h"
#include "headrace/train/records/training_state.h"

namespace headrace {

// The work of a fit, besides its model and options.
struct SharedWork {
  std::uint64_t steps;  // per epoch
  const DataIdentity& data;
  const std::optional<DataIdentity>& validation;
  LoaderState position;
};

// Throw WorkersDiffer naming the first difference. All workers make the calls.
//
// Before the work is prepared: options of a fit, an evaluation or a prediction, and callbacks that change the
// training. What only the chief uses, where and how each reads its data, and when it stops, may differ.
void require_same_options(Workers& workers, const FitOptions& options);
void require_same_evaluation(Workers& workers, const Model& model, const Dataset& data,
                             const EvaluateOptions& options, Mode mode);
// Before the first step: processors, data, net, loss, optimizer, position, variables.
void require_same_work(Workers& workers, const Model& model, const SharedWork& work);

// Throws WorkersDiffer naming a record whose bytes differ, where the source reads files whose content is not in
// its fingerprint. Reads whole records in an order drawn by `seed`, until it has seen all, or a worker has read
// for 10 s or 1 GiB. Adds the source to `compared`; reads nothing if every worker has it there already. All
// workers make the call, with sources of one fingerprint and with one seed.
void require_same_content(Workers& workers, const SourcePtr& source, std::uint64_t seed,
                          ComparedSources& compared);

}  // namespace headrace
