// The threads that may wait for files, which fetch records for compute.
#pragma once

#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/engine/compute.h"
#include "headrace/pipeline/engine/engine_thread.h"
#include "headrace/pipeline/engine/stream_feed.h"

namespace headrace {

class Readers {
 public:
  Readers(Ring& ring, const RecordReader& reader, const RowErrors& errors, ReadAhead& read_ahead, Compute& compute)
      : ring_(ring), reader_(reader), errors_(errors), read_ahead_(read_ahead), compute_(compute) {}

  // Starts `count` readers, which keep `owner` and thus all references alive. `trace` null: no tracing.
  void start(int count, const std::shared_ptr<void>& owner, Trace* trace);
  // Starts the single reader of a stream.
  void start_pulling(StreamFeed& feed, const std::shared_ptr<void>& owner, Trace* trace);
  // Waits until no reader is at work, until `deadline` for those in user code. REQUIRES: after ReadAhead::stop().
  void end(std::uint64_t deadline);

  const std::vector<EngineThread>& threads() const noexcept { return threads_; }

 private:
  void run(ThreadState& state, int number);
  bool fetch(FetchedRecord& record, ThreadState& state);

  Ring& ring_;
  const RecordReader& reader_;
  const RowErrors& errors_;
  ReadAhead& read_ahead_;
  Compute& compute_;
  std::vector<EngineThread> threads_;
};

}  // namespace headrace
