// Where one replica's step runs.
#pragma once

#include "headrace/devices/base/api.h"
#include "headrace/devices/stream.h"

namespace HEADRACE_API headrace {

// `communication` takes the sums over replicas; where they gain nothing by running beside the rest it is
// `compute`.
struct ReplicaStreams {
  Stream& compute;
  Stream& communication;

  bool apart() const noexcept { return &compute != &communication; }
};

}  // namespace headrace
