#include "headrace/devices/cpu/cpu_stream.h"

#include <omp.h>

#include <cstring>
#include <utility>

#include "headrace/devices/base/check.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_wait.h"
#include "headrace/devices/device.h"

namespace headrace {

CpuStream::CpuStream(Device& device, int threads) : device_(device), worker_([this, threads] { work(threads); }) {}

CpuStream::~CpuStream() {
  push({});
  worker_.join();
}

void CpuStream::synchronize() {
  if (capture_) refuse("synchronize() while the stream is capturing", "call end_capture() first");
  refuse_own_worker("synchronize()");
  const std::uint32_t target = submitted_.load(std::memory_order_relaxed);
  for (std::uint32_t seen; (seen = finished_.load(std::memory_order_acquire)) != target;) {
    wait_while(finished_, seen);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CpuStream::record(Event& event) {
  auto* mine = dynamic_cast<CpuEvent*>(&event);
  if (mine == nullptr) refuse("record() of an event of another kind of device", "use an event of this device");
  if (capture_) return capture_->add_record(*mine);
  const auto reach = [point = mine->renew()] { point->reach(); };
  push({.run = reach, .skipped = reach});
}

void CpuStream::wait(const Event& event) {
  const auto* mine = dynamic_cast<const CpuEvent*>(&event);
  if (mine == nullptr) {
    refuse("wait() for an event of another kind of device", "wait for it on the host, with Event::wait()");
  }
  if (capture_) return capture_->add_wait(*mine);
  auto point = mine->last();
  if (point == nullptr || point->reached()) return;
  const auto wait = [point = std::move(point)] { point->wait(); };
  push({.run = wait, .skipped = wait});
}

void CpuStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) submit([=] { std::memcpy(to, from, bytes); });
}

void CpuStream::fill(void* to, unsigned char value, std::size_t bytes) {
  if (bytes != 0) submit([=] { std::memset(to, value, bytes); });
}

void CpuStream::call(std::function<void()> function) { submit(std::move(function)); }

void CpuStream::begin_capture() {
  if (capture_) refuse("begin_capture() while the stream is capturing", "captures do not nest");
  capture_ = std::make_unique<CpuCapturedWork>();
}

std::unique_ptr<CapturedWork> CpuStream::end_capture() {
  if (!capture_) refuse("end_capture() without begin_capture()", {});
  return std::move(capture_);
}

void CpuStream::launch(CapturedWork& work) {
  if (capture_) refuse("launch() while the stream is capturing", "captures do not nest: launch it afterwards");
  const auto* mine = dynamic_cast<const CpuCapturedWork*>(&work);
  if (mine == nullptr) refuse("launch() of work captured by another kind of device", {});
  const auto points = std::make_shared<const CpuCapturedWork::Points>(mine->resolve());
  push({.run = [=] { mine->run(*points); }, .skipped = [=] { mine->skip(*points); }});
}

void CpuStream::submit(std::function<void()> work, std::function<void()> skipped) {
  HEADRACE_CHECK(work != nullptr, "submit() of an empty function");
  if (capture_) return capture_->add(std::move(work), std::move(skipped));
  push({.run = std::move(work), .skipped = std::move(skipped)});
}

void CpuStream::push(Item item) {
  refuse_own_worker("submitting");
  const std::uint32_t next = submitted_.load(std::memory_order_relaxed);
  for (std::uint32_t seen; next - (seen = finished_.load(std::memory_order_acquire)) == kQueueLength;) {
    wait_while(finished_, seen);
  }
  ring_[next % kQueueLength] = std::move(item);
  submitted_.store(next + 1);
  submitted_.notify_one();
}

void CpuStream::work(int threads) {
  omp_set_num_threads(threads);
  for (std::uint32_t next = 0;; ++next) {
    wait_while(submitted_, next);
    {
      const Item item = std::exchange(ring_[next % kQueueLength], {});
      if (!item.run) return;
      execute(item);
    }  // what the closures hold is let go before the item counts as finished
    finished_.store(next + 1);
    finished_.notify_all();
  }
}

void CpuStream::execute(const Item& item) noexcept {
  try {
    if (!error_) {
      item.run();
    } else if (item.skipped) {
      item.skipped();
    }
  } catch (...) {
    error_ = std::current_exception();
  }
}

void CpuStream::refuse_own_worker(const char* what) const {
  if (std::this_thread::get_id() != worker_.get_id()) return;
  refuse(std::string(what) + " from within this stream's own work", "a host function in stream order must not");
}

void CpuStream::refuse(const std::string& message, const std::string& hint) const {
  throw DeviceError(ErrorCode::kInvalidArgument, message, device_.info().name, hint);
}

}  // namespace headrace
