// How to train a model on data.
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
  kStop,  // an Error that names the step, or after an epoch the variable; a label out of range with its record
  kIgnore,
  // As kStop, but the Error names the operation, forward or backward, whose result first held a NaN or an
  // infinity, with layer, replica, step, shape and record. To find errors with: nothing is in flight while each
  // step's numbers are looked at. The same weights.
  kTrace,
};

// What a step is made of and what is looked at meanwhile, of a fit and of a Trainer alike.
struct StepOptions {
  // Batches a step: their gradients are summed before one all-reduce and one update, as if they were one
  // batch (the last step of a pass may have fewer).
  int accumulate = 1;
  // A power of two, 8 for example, makes the result independent of the replicas: each global batch is divided into
  // that many shards, which have gradients, sums and batch statistics of their own and are added as one tree.
  // Final weights and history are then bit-identical for 1, 2, 4 ... up to that many replicas of one kind of
  // device, one GPU or several. A batch-norm layer sees a shard at a time, and a shard computes with one thread,
  // several side by side: its price is small where a shard has some tens of examples. Several GPUs add in a fixed
  // order in place of NCCL's (Collective::in_order()). 0: one shard a replica, so that the order of sums depends
  // on the number of replicas.
  int virtual_shards = 0;
  NanPolicy nan = NanPolicy::kStop;
  // Debugging: every this many steps compare the hashes of all replicas' variables; 0: never.
  std::uint64_t mirror_check_every = 0;
  // Computes the norm of each step's gradients, for reports and Trainer::gradient_norms(): a pass over them in
  // each step, and a report of a step waits for it.
  bool gradient_norms = false;
};

struct FitOptions {
  int epochs = 1;
  // Optimizer steps in an epoch; 0: one pass over the data. Otherwise each epoch continues in the data where the
  // last one stopped, and the data start over when they end.
  std::uint64_t steps_per_epoch = 0;
  std::optional<Dataset> validation = std::nullopt;
  std::vector<Callback> callbacks = {};
  // 0: nothing. 1: a live bar on a terminal, else as 2. 2: a line an epoch.
  int verbose = 1;
  std::FILE* output = stdout;  // where verbose writes
  // How the data are read: order, threads, budgets, time-outs, bad records. Dropout has the same seed, and a trace
  // is also given what each replica's device did. The fit itself decides `epochs`, `start`, `converted` and
  // `trace_spans`: a ConfigError where they are set. The validation has a loader of its own with the same options,
  // budgets included, which is not traced and for which Residency::kAlways means kAuto.
  LoaderOptions input = {};
  StepOptions step = {};
  // End the fit, cleanly, once the model has made this many optimizer steps in all; 0: no such limit. An epoch
  // that is cut short is reported without validation.
  std::uint64_t stop_after_steps = 0;
  // Set by another thread or a signal handler: the fit ends after the present step, or batch of the validation.
  const std::atomic<bool>* stop = nullptr;
  // Where the training is kept while it runs. A fit that ends, whatever ends it but an error, leaves one.
  std::optional<CheckpointOptions> checkpoints = std::nullopt;
  // Continue: from where the model was restored (restore_or_create()), else from the newest checkpoint in the
  // checkpoints' folder, else begin. Everything goes on as if it had never stopped, with the same bits where the
  // number of replicas is the same, or with virtual shards any: variables, optimizer, position in the data and in
  // the epoch, callbacks, history, of which fit() then returns all. ConfigError naming each thing that would
  // change the result and is not the file's: net, loss, metrics, optimizer, precision, data, seed, steps. Only
  // `epochs`, schedules, replicas and what decides how fast data are read may differ. What a callback ended after
  // an epoch has ended, unless there are more.
  bool resume = false;
  // Validate with the average of the weights, as EvaluateOptions::averaged_weights.
  bool validate_averaged = false;
};

// Optimizer steps in a pass over the data, in an epoch and in all epochs, for a schedule of the learning rate;
// stop_after_steps does not count. ConfigError where the options are wrong or the data give no batch.
std::uint64_t steps_of_pass(const Dataset& train, const FitOptions& options);
std::uint64_t steps_of_epoch(const Dataset& train, const FitOptions& options);
std::uint64_t steps_of_fit(const Dataset& train, const FitOptions& options);

}  // namespace headrace
