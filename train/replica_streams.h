// Where one replica's step runs.
#pragma once

#include "headrace/devices/base/api.h"
#include "headrace/devices/stream.h"

namespace HEADRACE_API headrace {

// What a step submits to streams other than `compute` runs beside it, ordered by Stream::follow() alone, and
// belongs into one capture of it. Where that gains nothing they are `compute`, and the step is one chain.
struct ReplicaStreams {
  Stream& compute;
  Stream& communication = compute;  // sums over replicas
  Stream& weights = compute;        // gradients of weights: no other layer of the backward pass waits for them
  Stream& updates = compute;        // updates that need not wait for the end of the backward pass

  bool sums_apart() const noexcept { return &compute != &communication; }
  bool weights_apart() const noexcept { return &compute != &weights; }
  bool updates_apart() const noexcept { return &compute != &updates; }
};

}  // namespace headrace
