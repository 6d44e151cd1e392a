// When a copy stream really copies: stamped by the stream itself, before and after.
#pragma once

#include <cstdint>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/trace.h"
#include "headrace/devices/stream.h"
#include "headrace/pipeline/operations/machinery/stage_clock.h"

namespace headrace {

// Outlives the stream. begin() and end() are called by the assembler, their stamps taken in stream order.
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

}  // namespace headrace
