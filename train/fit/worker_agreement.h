// Keeps the workers of a fit or an evaluation in agreement: checks beforehand that they are about to do the same,
// and lets them stop together.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/workers.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/layers.h"
#include "headrace/train/model.h"
#include "headrace/train/records/training_state.h"
#include "headrace/train/strategy.h"

namespace headrace {

// Decides when to stop: all workers end after the same step, whichever of them was told to. They meet about once a
// second, after a number of steps that follows from the slowest one's pace. One process alone never meets, and
// asks nobody. One thread.
class WorkerAgreement {
 public:
  explicit WorkerAgreement(const Strategy& strategy) : workers_(strategy.workers()) {}

  bool several() const noexcept { return workers_ != nullptr; }

  // Counts a step. Returns whether all workers meet after it.
  bool meets_after_step() noexcept { return several() && ++steps_ == next_; }
  // Returns whether any worker wants to stop, or was interrupted (FitOptions::stop). All workers make the call,
  // with idle streams. Throws WorkersDiffer if they are not all in the same `state`.
  bool agree(bool stop, bool interrupted, const std::string& state);
  // Throws WorkerInterrupted if others were interrupted and this worker was not: its own caller asked for no end.
  void require_uninterrupted(const std::string& outcome) const;
  // Returns the last answer.
  bool stops() const noexcept { return stops_; }

 private:
  std::shared_ptr<Workers> workers_;
  bool stops_ = false;
  std::optional<int> interrupted_;      // the first worker that was; none if this one was, too
  std::uint64_t steps_ = 0, next_ = 1;  // since the last meeting
  Stopwatch since_;
};

// Tells the other workers of an error that ends this one's part in a fit or an evaluation: they would wait for it.
void tell_workers(const Strategy& strategy, const std::exception& error) noexcept;

// Returns what function() does; tells the other workers of its errors.
template <typename Function>
decltype(auto) with_workers(const Strategy& strategy, const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    tell_workers(strategy, error);
    throw;
  }
}

// Compares what the workers of a fit are about to do.

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
