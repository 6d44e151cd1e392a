// A batch with several owners: for bindings and for tensors that are handed to other libraries.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/pipeline/batch.h"

namespace headrace {

// Copies share the batch; the last one to go gives its slot back. Thread-safe.
class SharedBatch {
 public:
  // `keeps` is kept as long as the batch: whoever owns its devices, say.
  explicit SharedBatch(Batch batch, std::shared_ptr<const void> keeps = nullptr);

  const Batch& operator*() const noexcept;
  const Batch* operator->() const noexcept { return &**this; }

  // The embedding program is going to use the batch in a stream of its own, the device's handle (a cudaStream_t as
  // a number; 0 is the default stream): what it submits there from now on waits for ready(), the host does not;
  // and the slot is refilled only after what it has submitted there by the time that the last owner goes. The
  // stream must live until then. Where several streams use a batch, the one named first is made to wait for the
  // others in the end. On a device that computes in the host's memory the host waits, for any stream.
  void use_in(std::uintptr_t stream) const;

 private:
  class Held;
  std::shared_ptr<Held> held_;
};

}  // namespace headrace
