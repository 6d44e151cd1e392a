// Options for training a model on data.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/metrics.h"

namespace HEADRACE_API headrace {

enum class NanPolicy {
  kStop,  // an Error naming the step, or after an epoch the variable; a label out of range with its record
  kIgnore,
  // Like kStop, but the Error names the operation, forward or backward, whose result first held a NaN or an
  // infinity, with layer, replica, step, shape and record. For debugging: nothing is in flight while each step's
  // numbers are inspected. Trains the same weights.
  kTrace,
};

// The make-up of a training step and the checks made meanwhile, for a fit and a Trainer alike.
struct StepOptions {
  // Batches per step: their gradients are summed before one all-reduce and one update, as if they were one batch
  // (the last step of a pass may have fewer).
  int accumulate = 1;
  // A power of two, e.g. 8, makes the result independent of the number of replicas: each global batch is divided
  // into this many shards, which have gradients, sums and batch statistics of their own and are added as one tree.
  // Final weights and history are then bit-identical for 1, 2, 4 ... up to this many replicas on one kind of
  // device, one GPU or several. A batch-norm layer sees one shard at a time, and each shard computes with one
  // thread, several side by side: the price is small if a shard has some tens of examples. Several GPUs add in a
  // fixed order instead of NCCL's (Collective::in_order()). 0: one shard per replica, so that the order of sums
  // depends on the number of replicas.
  int virtual_shards = 0;
  NanPolicy nan = NanPolicy::kStop;
  // Debugging: compares the hashes of all replicas' variables every this many steps; 0: never.
  std::uint64_t mirror_check_every = 0;
  // Computes the norm of each step's gradients for reports and Trainer::gradient_norms(): costs a pass over them
  // in each step, and a step report waits for it.
  bool gradient_norms = false;
};

struct FitOptions {
  int epochs = 1;
  // Optimizer steps per epoch; 0: one pass over the data. Otherwise each epoch continues in the data where the
  // last one stopped, and the data start over when they end.
  std::uint64_t steps_per_epoch = 0;
  std::optional<Dataset> validation = std::nullopt;
  // Validates instead with this share of the records, the last ones before any shuffle, and trains on the others:
  // see hold_out_last(). Between 0 and 1; 0: none.
  double validation_split = 0;
  std::vector<Callback> callbacks = {};
  // 0: silent. 1: a live progress bar on a terminal, otherwise like 2. 2: one line per epoch.
  int verbose = 1;
  std::FILE* output = stdout;  // where verbose writes
  // How the data are read: order, threads, budgets, time-outs, bad records. Dropout uses the same seed, and a
  // trace also receives what each replica's device did. The fit itself decides `epochs`, `start`, `converted` and
  // `trace_spans`: ConfigError if one is set. The validation has its own loader with the same options, budgets
  // included, which is not traced, takes its batches in order, and for which Residency::kAlways means kAuto. With
  // `in_order` false the steps take the batches of an epoch in an order that depends on timing, and so does what
  // is trained, with virtual shards, too; a resumed fit still trains on every example once an epoch. ConfigError
  // if there are several workers.
  LoaderOptions input = {};
  StepOptions step = {};
  // The weight of each class in this fit's training loss, as Loss::class_weighted() would give it; its validation
  // is not weighted. ConfigError if the loss has several terms. Empty: those of the loss, if any.
  std::vector<float> class_weights = {};
  // Ends the fit cleanly once the model has made this many optimizer steps in total; 0: no limit. An epoch that is
  // cut short is reported without validation.
  std::uint64_t stop_after_steps = 0;
  // Set by another thread or a signal handler: the fit ends after the current step or validation batch.
  const std::atomic<bool>* stop = nullptr;
  // The checkpoints to keep. A fit leaves one whenever it ends, unless it ends with an error.
  std::optional<CheckpointOptions> checkpoints = std::nullopt;
  // Continues from where the model was restored (restore_or_create()), or else from the newest checkpoint in the
  // checkpoints' folder, or else begins. Everything goes on as if it had never stopped, with the same bits if the
  // number of replicas is the same, or with any number if virtual shards are used: variables, optimizer, position
  // in the data and in the epoch, callbacks, and history, which fit() then returns in full. ConfigError naming
  // each difference from the file that would change the result: net, loss, metrics, optimizer, precision, data,
  // seed, steps. Only `epochs`, schedules, replicas and options for reading speed may differ. A fit that a
  // callback ended after an epoch stays ended unless `epochs` is larger.
  bool resume = false;
  // Validates with the average of the weights, see EvaluateOptions::averaged_weights.
  bool validate_averaged = false;
};

// Returns the optimizer steps in one pass over the data, in one epoch and in all epochs, for schedules;
// stop_after_steps does not count. With validation_split, `train` is all of the data. Throws ConfigError if the
// options are wrong or the data give no batch.
std::uint64_t steps_of_pass(const Dataset& train, const FitOptions& options);
std::uint64_t steps_of_epoch(const Dataset& train, const FitOptions& options);
std::uint64_t steps_of_fit(const Dataset& train, const FitOptions& options);

}  // namespace headrace
