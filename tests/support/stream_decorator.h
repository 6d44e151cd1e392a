// A stream that does all as another does, for tests that change one thing about it.
#pragma once

#include <memory>
#include <utility>

#include "headrace/devices/stream.h"

namespace headrace::test {

class StreamDecorator : public Stream {
 public:
  explicit StreamDecorator(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}

  Device& device() const noexcept override { return inner_->device(); }
  void synchronize() override { inner_->synchronize(); }
  void record(Event& event) override { inner_->record(event); }
  void wait(const Event& event) override { inner_->wait(event); }
  void follow(Stream& other) override {
    auto* decorated = dynamic_cast<StreamDecorator*>(&other);
    inner_->follow(decorated != nullptr ? *decorated->inner_ : other);
  }
  Buffer allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { inner_->copy(to, from, bytes); }
  void fill(void* to, unsigned char value, std::size_t bytes) override { inner_->fill(to, value, bytes); }
  void call(std::function<void()> function) override { inner_->call(std::move(function)); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<CapturedWork> end_capture() override { return inner_->end_capture(); }
  void launch(CapturedWork& work) override { inner_->launch(work); }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_->release(data, bytes, place);
  }

 private:
  std::unique_ptr<Stream> inner_;
};

}  // namespace headrace::test
