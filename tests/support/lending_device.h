// A device with memory of its own that lends its streams to other libraries and sends batches when a test says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "headrace/tests/support/discrete_device.h"

namespace headrace::test {

// What another library's stream is good for: order.
class BorrowedStream final : public StreamDecorator {
 public:
  explicit BorrowedStream(Stream& lent) : StreamDecorator(nullptr), lent_(lent) {}

  Device& device() const noexcept override { return lent_.device(); }
  void synchronize() override { lent_.synchronize(); }
  void record(Event& event) override { lent_.record(event); }
  void wait(const Event& event) override { lent_.wait(event); }

 private:
  Stream& lent_;
};

// A handle is the address of a Stream.
class LendingDevice final : public DiscreteDevice {
 public:
  using DiscreteDevice::DiscreteDevice;

  static std::uintptr_t handle_of(Stream& stream) { return reinterpret_cast<std::uintptr_t>(&stream); }

  // Called in the order of each stream opened from now on, before each of its copies.
  void before_copies(std::function<void()> blocker) { blocker_ = std::move(blocker); }

  std::unique_ptr<Stream> create_stream() override {
    auto stream = DiscreteDevice::create_stream();
    if (blocker_ == nullptr) return stream;
    return std::make_unique<BlockedStream>(std::move(stream), blocker_);
  }
  std::unique_ptr<Stream> borrow_stream(std::uintptr_t handle) override {
    return std::make_unique<BorrowedStream>(*reinterpret_cast<Stream*>(handle));
  }

 private:
  class BlockedStream final : public StreamDecorator {
   public:
    BlockedStream(std::unique_ptr<Stream> inner, std::function<void()> blocker)
        : StreamDecorator(std::move(inner)), blocker_(std::move(blocker)) {}

    void copy(void* to, const void* from, std::size_t bytes) override {
      call(blocker_);
      StreamDecorator::copy(to, from, bytes);
    }

   private:
    std::function<void()> blocker_;
  };

  std::function<void()> blocker_;
};

}  // namespace headrace::test
