// An in-order queue of work on one device. The same meaning on every backend:
//  - submitting never waits for the work (it may wait for room in the queue);
//  - work of one stream runs in the order of submission, work of two streams in any order unless an
//    event orders it;
//  - an error in the work surfaces at the next synchronize(); later work of that stream is skipped.
// A stream may be used by one host thread at a time. Everything it refers to must live until it is done.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "headrace/devices/base/api.h"
#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"

namespace HEADRACE_API headrace {

class Device;

// Work of a stream that was recorded once, to be launched many times at the cost of one launch. Made by
// Stream::end_capture(). Pointers are fixed at capture; what they point to may change between launches. Must
// outlive every launch of it that has not finished.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

// One of several copies.
struct MemoryCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

class Stream : public BufferOwner {
 public:
  ~Stream() override = default;  // waits for submitted work; errors not yet reported are dropped

  virtual Device& device() const noexcept = 0;

  // Blocks the host until everything submitted is done; throws the first error of that work, once.
  virtual void synchronize() = 0;

  // Marks this point of the stream.
  virtual void record(Event& event) = 0;
  // Work submitted after this starts only when `event`'s last record is complete. Does not block the host.
  virtual void wait(const Event& event) = 0;
  // Work submitted to this stream from now on starts only when all that `other`, of the same device, was given so
  // far is done. Where `other` captures, this stream joins its capture until that ends: what is submitted to
  // either is recorded, and runs side by side at each launch but for the order that follow() gives. Errors are the
  // launching stream's. The capturing stream must follow this one before the end of the capture.
  virtual void follow(Stream& other) = 0;

  // Device memory in stream order, uninitialised, aligned to at least 64 bytes: work submitted from now on has it.
  // When the buffer is destroyed, at the host's time, what was submitted before still has it and nobody waits;
  // where a device keeps a pool, what is allocated later gets the same bytes without asking the system. Other
  // streams have to be ordered by events or follow(). Not while the stream captures, nor by work of its own;
  // captured work may use it while it lives. Throws DeviceError(kOutOfMemory) with sizes.
  virtual Buffer allocate(std::size_t bytes) = 0;

  // Copies between any two places this device reaches (device, pinned, pageable host memory).
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // The same of all of them, in no order among themselves, at the cost of one where the device can: of device and
  // pinned memory. What one writes no other may read or write.
  virtual void copy_together(std::span<const MemoryCopy> copies) {
    for (const MemoryCopy& each : copies) copy(each.to, each.from, each.bytes);
  }
  virtual void fill(void* to, unsigned char value, std::size_t bytes) = 0;
  // Calls a host function in stream order. It must not submit work or block on this device.
  virtual void call(std::function<void()> function) = 0;

  // Between these two, submissions are recorded instead of run. synchronize() is an error in between.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedWork> end_capture() = 0;
  virtual void launch(CapturedWork& work) = 0;
};

}  // namespace headrace
