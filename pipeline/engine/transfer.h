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

// When a copy stream really copies: stamped by the stream itself, before and after. Outlives the stream. begin()
// and end() are called by the assembler, their stamps taken in stream order.
class CopyClock {
 public:
  explicit CopyClock(TraceRing* trace) : trace_(trace) {}

  // Stamping holds the stream up for a moment, so one copy in kEvery is stamped, and counts for all of them; all
  // are when they are traced.
  static constexpr std::uint64_t kEvery = 4;
  bool stamps(std::uint64_t sequence) const noexcept { return trace_ != nullptr || sequence % kEvery == 0; }

  void begin(Stream& stream) {
    stream.call([this] { begun_ = now_ns(); });
  }
  void end(Stream& stream, std::uint64_t sequence, std::uint64_t rows) {
    stream.call([this, sequence, rows] {
      const std::uint64_t now = now_ns();
      const std::uint64_t weight = trace_ != nullptr ? 1 : kEvery;
      copying_.add(rows * weight, (now - begun_) * weight);
      if (trace_ != nullptr) {
        trace_->add({.name = "copy", .begin_ns = begun_, .end_ns = now, .batch = sequence, .items = rows});
      }
    });
  }

  const StageClock& copying() const noexcept { return copying_; }

 private:
  TraceRing* trace_;
  std::uint64_t begun_ = 0;  // by the stream
  StageClock copying_;
};

// By the assembler thread, but for the counters. `devices` must outlive it.
class Transfer {
 public:
  // What the devices convert and keep, allocated on them.
  Transfer(const RunPlan& run, DeviceGroup& devices, MemoryBudget& budget);

  // Null where the devices convert nothing.
  const DeviceConversion* conversion() const noexcept { return conversion_ ? &*conversion_ : nullptr; }

  // Opens a copy stream for each replica whose batches are sent. Null: nothing is traced.
  void open_streams(DeviceGroup& devices, Trace* trace);

  // Whether the devices have all the batch's images: then restore() writes the rest, and the host makes none.
  bool holds(const Slot& slot) const noexcept { return resident_ && resident_->holds(slot.records); }
  void restore(Slot& slot) const { resident_->restore(slot); }
  // Of a batch in Copying. Its copies wait for the consumers of the batch that the slot held before. What fails is
  // the batch's failure.
  void send(Slot& slot);

  // Any thread.
  std::uint64_t resident_records() const noexcept { return resident_records_.load(std::memory_order_relaxed); }
  // One a replica; null where nothing is copied.
  const std::vector<std::unique_ptr<CopyClock>>& clocks() const noexcept { return clocks_; }

  // Waits for what was submitted. Before any memory of its copies is freed.
  void free_streams() noexcept { streams_.clear(); }
  void free_memory() noexcept;

 private:
  void submit(Slot& slot);
  static void wait_for_consumer(const SlotShare& share, Stream& stream);
  void send_share(const SlotShare& share, std::size_t replica, std::uint64_t sequence);

  const RunPlan& run_;
  std::optional<DeviceConversion> conversion_;  // nothing where the host does everything
  std::optional<ResidentSamples> resident_;     // nothing where the devices keep none
  std::atomic<std::uint64_t> resident_records_{0};
  std::vector<std::unique_ptr<CopyClock>> clocks_;
  std::vector<std::unique_ptr<Stream>> streams_;  // one a replica; null where nothing is copied
};

}  // namespace headrace
