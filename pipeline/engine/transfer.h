// Sends finished batches to their devices, each in its replica's copy stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/trace.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/stream.h"
#include "headrace/pipeline/engine/resident_samples.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/operations/machinery/stage_clock.h"

namespace headrace {

// Measures when a copy stream really copies: the stream stamps the time before and after. Outlives the stream. The
// assembler calls begin() and end(), whose stamps are taken in stream order.
class CopyClock {
 public:
  explicit CopyClock(TraceRing* trace) : trace_(trace) {}

  // Stamping delays the stream briefly, so one copy in kEvery is stamped and counts for all of them; when tracing,
  // all are stamped.
  static constexpr std::uint64_t kEvery = 4;
  bool stamps(std::uint64_t sequence) const noexcept { return trace_ != nullptr || sequence % kEvery == 0; }

  void begin(Stream& stream) {
    stream.call([this] { begun_ = now_ns(); });
  }
  // Copies of one stream follow one another: the next one begins here.
  void end(Stream& stream, std::uint64_t sequence, std::uint64_t rows) {
    stream.call([this, sequence, rows] {
      const std::uint64_t now = now_ns();
      const std::uint64_t weight = trace_ != nullptr ? 1 : kEvery;
      copying_.add(rows * weight, (now - begun_) * weight);
      if (trace_ != nullptr) {
        trace_->add({.name = "copy", .begin_ns = begun_, .end_ns = now, .batch = sequence, .items = rows});
      }
      begun_ = now;
    });
  }

  const StageClock& copying() const noexcept { return copying_; }

 private:
  TraceRing* trace_;
  std::uint64_t begun_ = 0;  // by the stream
  StageClock copying_;
};

// Used by the assembler thread, except for the counters. REQUIRES: `devices` outlives this.
class Transfer {
 public:
  // Allocates the devices' conversion and resident samples.
  Transfer(const RunPlan& run, DeviceGroup& devices, MemoryBudget& budget);

  // Returns null if the devices convert nothing.
  const DeviceConversion* conversion() const noexcept { return conversion_ ? &*conversion_ : nullptr; }

  // Opens a copy stream for each device to which batches are sent: one for all virtual shards of a replica.
  // `trace` null: no tracing.
  void open_streams(DeviceGroup& devices, Trace* trace);

  // Returns whether the devices have all the batch's images: then restore() writes the rest, and the host makes
  // none.
  bool holds(const Slot& slot) const noexcept { return resident_ && resident_->holds(slot.records); }
  void restore(Slot& slot) const { resident_->restore(slot); }
  // Sends a batch. Its copies wait for the consumers of the slot's previous batch. Errors become the batch's
  // failure. REQUIRES: state Copying.
  void send(Slot& slot);

  // May be called by any thread.
  std::uint64_t resident_records() const noexcept { return resident_records_.load(std::memory_order_relaxed); }
  // Returns how many images the devices were given to decode. May be called by any thread.
  std::uint64_t decoded() const noexcept { return decoded_.load(std::memory_order_relaxed); }
  // Returns one clock per copy stream.
  const std::vector<std::unique_ptr<CopyClock>>& clocks() const noexcept { return clocks_; }

  // Waits for submitted work. REQUIRES: called before any memory of its copies is freed.
  void free_streams() noexcept {
    stream_of_.clear();
    streams_.clear();
  }
  void free_memory() noexcept;

 private:
  void submit(Slot& slot);
  static void wait_for_consumer(const SlotShare& share, Stream& stream);
  void send_share(const Slot& slot, std::size_t replica);
  static void send_tensors(const Slot& slot, const SlotShare& share, Stream& stream);

  const RunPlan& run_;
  std::optional<DeviceConversion> conversion_;  // std::nullopt if the host does everything
  std::optional<ResidentSamples> resident_;     // std::nullopt if the devices keep none
  std::atomic<std::uint64_t> resident_records_{0}, decoded_{0};
  std::vector<std::unique_ptr<CopyClock>> clocks_;  // one per stream, as streams_
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> stream_of_;    // of each replica; null if nothing is copied
  std::vector<CopyClock*> clock_of_;  // likewise
};

}  // namespace headrace
