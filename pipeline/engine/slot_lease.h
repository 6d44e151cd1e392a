// What a Batch holds of its slot.
#pragma once

#include "headrace/pipeline/batch.h"

namespace headrace {

class Slot;
class StreamEngine;

class SlotLease final : public BatchLease {
 public:
  SlotLease(StreamEngine& engine, Slot& slot, int replica) : engine_(&engine), slot_(&slot), replica_(replica) {}
  ~SlotLease() override { release(nullptr); }
  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;

  // The first call counts.
  void release(Stream* consumer) noexcept override;

 private:
  StreamEngine* engine_;  // null once released
  Slot* slot_;
  int replica_;
};

}  // namespace headrace
