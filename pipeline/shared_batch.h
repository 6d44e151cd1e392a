// A batch with several owners, for bindings and for tensors handed to other libraries.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/batch.h"

namespace HEADRACE_API headrace {

// Copies share the batch; the last one destroyed releases its slot. Thread-safe.
class SharedBatch {
 public:
  // `keeps` is kept as long as the batch: for example, the owner of its devices.
  explicit SharedBatch(Batch batch, std::shared_ptr<const void> keeps = nullptr);

  const Batch& operator*() const noexcept;
  const Batch* operator->() const noexcept { return &**this; }

  // Announces that the embedding program will use the batch in its own stream, given as the device's handle (a
  // cudaStream_t as a number; 0 is the default stream). Work submitted there from now on waits for ready(), the
  // host does not; and the slot is refilled only after the work submitted there by the time the last owner goes.
  // The stream must live until then. If several streams use a batch, the one named first finally waits for the
  // others. On a device that computes in the host's memory the host waits, for any stream.
  void use_in(std::uintptr_t stream) const;

 private:
  class HEADRACE_HIDDEN Held;
  std::shared_ptr<Held> held_;
};

}  // namespace headrace
