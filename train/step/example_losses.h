// The compiled loss of single examples.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/train/step/batch_runner.h"

namespace headrace {

// Submits the loss row by row, so that it is what a step computes for any loss there is, at many times the cost.
class ExampleLosses {
 public:
  // `fields` are the data's. Both must outlive this.
  ExampleLosses(const ModelState& model, const BatchRunner& runner, const Fields& fields);

  // Of the replica's last batch, whose results must still be in place; waits.
  std::vector<float> read(int replica);

 private:
  // One replica's device memory.
  struct Memory {
    Buffer scalars;  // those of one real example
    Buffer labels;   // of one
    Buffer totals;   // of each row
    Buffer scratch, pinned_scratch;
  };

  void bring_in_labels(int replica, std::int64_t row);
  void submit(int replica, std::int64_t row);
  std::byte* totals_of(int replica, std::int64_t row) const;

  const ModelState& model_;
  const BatchRunner& runner_;
  Objective one_;  // for a batch of one example
  std::vector<Memory> memory_;
};

}  // namespace headrace
