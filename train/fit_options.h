// How to run a model over data.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/views.h"

namespace headrace {

enum class NanPolicy {
  kStop,  // an Error that names the step, or after an epoch the variable; a label out of range with its record
  kIgnore,
};

struct FitOptions {
  int epochs = 1;
  // Optimizer steps that make an epoch; 0: one pass over the data. Otherwise the data goes on from epoch to
  // epoch where it stopped, and starts anew when it ends.
  std::uint64_t steps_per_epoch = 0;
  std::optional<Dataset> validation = std::nullopt;
  std::vector<Callback> callbacks = {};
  // 0: nothing. 1: a live bar on a terminal, else as 2. 2: a line an epoch.
  int verbose = 1;
  std::FILE* output = stdout;  // where verbose writes
  std::uint64_t seed = 0;      // of the data's order and operations, and of dropout
  int threads = 0;             // of the input engine; 0: one a processor
  int prefetch = -1;           // batches ahead; -1: as the plan says
  // The first so many batches are replayed for ever, as LoaderOptions::headspace: the rate is the trainer's own
  // ceiling and nothing is learned from the data as it is. 0: off.
  std::uint64_t headspace = 0;
  ErrorPolicy errors = {};               // of records that cannot be used, in training and in validation
  ConvertAt convert = ConvertAt::kAuto;  // as LoaderOptions::convert
  // As LoaderOptions::resident; where the training samples must be kept, those of the validation may be.
  Residency resident = Residency::kAuto;
  // Batches a step: their gradients are summed before one all-reduce and one update, as if they were one
  // batch (the last step of a pass may have fewer).
  int accumulate = 1;
  // End the fit, cleanly, once the model has made this many optimizer steps in all; 0: no such limit.
  std::uint64_t stop_after_steps = 0;
  // Set by another thread or a signal handler: the fit ends after the present step.
  const std::atomic<bool>* stop = nullptr;
  NanPolicy nan = NanPolicy::kStop;
  // Is given what the input engine's threads and each replica's device did when. Null: nothing is traced.
  std::shared_ptr<Trace> trace = {};
  // Debugging: every this many steps compare the hashes of all replicas' variables; 0: never.
  std::uint64_t mirror_check_every = 0;
};

struct EvaluateOptions {
  std::uint64_t steps = 0;  // batches; 0: all
  std::uint64_t seed = 0;
  int threads = 0;
  int prefetch = -1;
  ErrorPolicy errors = {};
  // What evaluate() makes of each image, all fields of shape (height, width, channels) alike: the logits are the
  // weighted sum over the views. Empty: the image as it is.
  std::vector<View> views = {};
  // Called with the batches submitted so far and their number, after each; on the thread that evaluates.
  std::function<void(std::uint64_t done, std::uint64_t of)> progress = {};
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;
  std::int64_t examples = 0;
  double seconds = 0;
};

// Results in the order in which the data set gives its records.
struct Predictions {
  Shape shape;  // (examples, ...)
  std::vector<float> values;
  std::vector<std::uint64_t> records;  // source record of each example
};

}  // namespace headrace
