// An in-order queue of work on one device, with these semantics on every backend:
//  - submitting never waits for the work (it may wait for room in the queue);
//  - work of one stream runs in the order of submission, work of two streams in any order unless an
//    event orders it;
//  - an error in the work surfaces at the next synchronize(); later work of that stream is skipped
//  (failure_word()).
// A stream may be used by one host thread at a time. Everything it refers to must live until it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "headrace/devices/base/api.h"
#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"

namespace HEADRACE_API headrace {

class Device;

// Work of a stream, recorded once and launched many times, each at the cost of one launch. Made by
// Stream::end_capture(). Pointers are fixed at capture; what they point to may change between launches. Must
// outlive every launch of it that has not finished.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

// One copy of copy_together().
struct MemoryCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

class Stream : public BufferOwner {
 public:
  ~Stream() override = default;  // waits for submitted work; errors not yet reported are dropped

  virtual Device& device() const noexcept = 0;

  // Blocks the host until everything submitted is done. Throws the first error of that work, once.
  virtual void synchronize() = 0;

  // Marks this point of the stream.
  virtual void record(Event& event) = 0;
  // Makes work submitted from now on start only when `event`'s last record is complete. Does not block the host.
  virtual void wait(const Event& event) = 0;
  // Makes work submitted to this stream from now on start only when all work submitted so far to `other`, a stream
  // of the same device, is done. If `other` captures, this stream joins its capture until that ends: submissions
  // to either are recorded, and at each launch run side by side except for the order that follow() gives. Errors
  // are the launching stream's. REQUIRES: the capturing stream follows this one before the end of the capture.
  virtual void follow(Stream& other) = 0;

  // Allocates device memory in stream order, uninitialised, aligned to at least 64 bytes, for work submitted from
  // now on. Work submitted before the buffer is destroyed still has it, and nobody waits; on a device with a pool,
  // later allocations get the same bytes without asking the system. Other streams must be ordered by events or
  // follow(). Captured work may use it while it lives. Throws DeviceError(kOutOfMemory) with sizes. REQUIRES: the
  // stream does not capture; not called from the stream's work.
  virtual Buffer allocate(std::size_t bytes) = 0;

  // Copies between any two places that this device reaches (device, pinned, pageable host memory).
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Makes all these copies, in no order among themselves, at the cost of one if the device can. REQUIRES: device
  // or pinned memory; no copy reads or writes what another writes.
  virtual void copy_together(std::span<const MemoryCopy> copies) {
    for (const MemoryCopy& each : copies) copy(each.to, each.from, each.bytes);
  }
  virtual void fill(void* to, unsigned char value, std::size_t bytes) = 0;
  // Calls a host function in stream order. It must not submit work or block on this device.
  virtual void call(std::function<void()> function) = 0;

  // Returns null if an error skips all later work of the stream. A GPU skips only what was not queued by then:
  // there it is a word of pinned memory, not 0 from the error until that is reported. A copy of it in stream order
  // tells whether the work before the copy is valid.
  virtual const std::uint32_t* failure_word() const noexcept { return nullptr; }

  // Between begin_capture() and end_capture(), submissions are recorded, not run; synchronize() is an error.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedWork> end_capture() = 0;
  virtual void launch(CapturedWork& work) = 0;
};

}  // namespace headrace
