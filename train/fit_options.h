// Options for training a model on data.
#pragma once

#include <array>
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
constexpr std::array<const char*, 3> choice_names(NanPolicy) { return {"stop", "ignore", "trace"}; }

// The make-up of a training step and the checks made meanwhile, for a fit and a Trainer alike.
struct StepOptions {
  int accumulate = 1;
  // Each shard has gradients, sums and batch statistics of its own; all are added as one tree. Final weights and
  // history are then bit-identical for 1, 2, 4 ... up to this many replicas on one kind of device, one GPU or
  // several. Each shard computes with one thread, several side by side: the price is small if a shard has some
  // tens of examples. Several GPUs add in a fixed order instead of NCCL's (Collective::in_order()).
  int virtual_shards = 0;
  NanPolicy nan = NanPolicy::kStop;
  std::uint64_t mirror_check_every = 0;
  bool gradient_norms = false;

  void each_field(OptionVisitor& visit) {
    visit(
        "accumulate", accumulate,
        "Batches whose gradients are summed before one update, as if they were one batch; the last step of a pass "
        "may have fewer.");
    visit(
        "virtual_shards", virtual_shards,
        "A power of two, such as 8, makes the result the same bits for any number of replicas up to this: each "
        "global batch is divided into so many shards, each with batch statistics of its own. 0: the order of sums "
        "depends on the number of replicas.");
    visit("nan", nan,
          "Whether a loss that is not finite ends the run; \"trace\" also names the operation whose result it was "
          "first, for which nothing is in flight while each step's numbers are inspected.");
    visit("mirror_check_every", mirror_check_every,
          "For debugging: compares the hashes of all replicas' variables every this many steps; 0: never.");
    visit("gradient_norms", gradient_norms,
          "Whether the norm of each step's gradients is computed for reports, which costs a pass over them.");
  }
};

struct FitOptions {
  int epochs = 1;
  std::uint64_t steps_per_epoch = 0;
  std::optional<Dataset> validation = std::nullopt;
  double validation_split = 0;
  std::vector<Callback> callbacks = {};
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
  // As Loss::class_weighted() would give them. ConfigError if the loss has several terms.
  std::vector<float> class_weight = {};
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
  bool validate_averaged = false;

  // Without those of `input` and `checkpoints`.
  void each_field(OptionVisitor& visit) {
    visit("epochs", epochs, "Epochs in all, those of before a resumption included.");
    visit(
        "steps_per_epoch", steps_per_epoch,
        "Optimizer steps of an epoch; 0: one pass over the data. Otherwise each epoch continues in the data where "
        "the last one stopped, and the data start over when they end.");
    visit(
        "validation_split", validation_split,
        "This share of the records, the last ones before any shuffle, validates and is not trained on; 0: none.");
    visit("verbose", verbose,
          "0: nothing is printed; 1: a live progress bar on a terminal, otherwise like 2; 2: a line for each "
          "epoch.");
    step.each_field(visit);
    visit(
        "class_weight", class_weight,
        "What the loss of each class's examples is multiplied by in this fit; the validation's is not. Empty: the "
        "loss's own.");
    visit("stop_after_steps", stop_after_steps,
          "Ends the fit once the model has made this many optimizer steps in total; 0: no limit. An epoch that is "
          "cut short is reported without validation.");
    visit("resume", resume,
          "Continues from where the model was restored, or from the newest checkpoint in the folder, or else "
          "begins: "
          "with the same bits as if it had never stopped.");
    visit("validate_averaged", validate_averaged, "Validates with the optimizer's average of the weights.");
  }
};

// Returns the optimizer steps in one pass over the data, in one epoch and in all epochs, for schedules;
// stop_after_steps does not count. With validation_split, `train` is all of the data. Throws ConfigError if the
// options are wrong or the data give no batch.
std::uint64_t steps_of_pass(const Dataset& train, const FitOptions& options);
std::uint64_t steps_of_epoch(const Dataset& train, const FitOptions& options);
std::uint64_t steps_of_fit(const Dataset& train, const FitOptions& options);

}  // namespace headrace
