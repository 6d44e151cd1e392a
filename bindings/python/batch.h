// Batches and their tensors, as Python holds them.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/shared_batch.h"

namespace headrace::python {

// A share of a batch that a process forked meanwhile does not return: the slots belong to its parent.
class HeldBatch {
 public:
  explicit HeldBatch(SharedBatch batch) : batch_(std::move(batch)) {}
  HeldBatch(const HeldBatch&) = default;
  HeldBatch& operator=(const HeldBatch&) = delete;
  ~HeldBatch() {
    if (getpid() != process_) new SharedBatch(std::move(batch_));
  }

  const SharedBatch& shared() const noexcept { return batch_; }
  const Batch& operator*() const noexcept { return *batch_; }
  const Batch* operator->() const noexcept { return &*batch_; }

 private:
  pid_t process_ = getpid();
  SharedBatch batch_;
};

struct PythonBatch {
  HeldBatch batch;
  int replica = 0;
};

struct PythonTensor {
  HeldBatch batch;
  std::size_t field = 0;
  bool padding = false;  // with the rows that pad the batch

  const TensorView& view() const { return batch->tensors()[field]; }
  std::int64_t rows() const { return padding ? view().shape[0] : batch->entries(field); }
};

// Returns the batch as Arrow's capsules of a schema and an array: __arrow_c_array__().
nanobind::tuple to_arrow(const PythonBatch& batch, nanobind::handle requested_schema);

// Returns a copy in separate memory, including bfloat16 and padding; `devices` own the batch's device. Waits.
SharedBatch copy_of(const SharedBatch& batch, std::shared_ptr<const void> devices);

}  // namespace headrace::python
