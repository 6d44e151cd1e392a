#include "headrace/pipeline/engine/slot_lease.h"

#include <utility>

#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {

void SlotLease::release(Stream* consumer) noexcept {
  if (StreamEngine* engine = std::exchange(engine_, nullptr); engine != nullptr) {
    engine->release(*slot_, replica_, consumer);
  }
}

}  // namespace headrace
