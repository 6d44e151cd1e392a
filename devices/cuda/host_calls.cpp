#include "headrace/devices/cuda/host_calls.h"

#include <utility>

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {

HostFailure::HostFailure(const std::string& device) {
  void* word = nullptr;
  CUDA_CHECK(cudaHostAlloc(&word, sizeof(std::uint32_t), cudaHostAllocPortable | cudaHostAllocMapped), device);
  word_ = static_cast<std::uint32_t*>(word);
  mark(false);
}

HostFailure::~HostFailure() { cudaFreeHost(word_); }

void HostFailure::mark(bool failed) noexcept {
  std::atomic_ref(*word_).store(failed ? 1U : 0U, std::memory_order_release);
}

void HostFailure::keep(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  error_.note(std::move(error));
  mark(true);
}

std::exception_ptr HostFailure::take() noexcept {
  const std::lock_guard lock(mutex_);
  mark(false);
  return error_.take();
}

void HostCalls::submit(std::function<void()> function, const FailureSlot& failure, cudaStream_t stream,
                       const std::string& device) {
  auto call = std::make_unique<Call>();
  call->function = std::move(function);
  call->failure = &failure;
  Call* submitted = call.get();
  calls_.push_back(std::move(call));
  CUDA_CHECK(cudaLaunchHostFunc(stream, &HostCalls::run, submitted), device);
}

void HostCalls::collect() noexcept {
  while (!calls_.empty() && calls_.front()->over.load(std::memory_order_acquire)) calls_.pop_front();
}

void HostCalls::run(void* data) noexcept {
  auto& call = *static_cast<Call*>(data);
  HostFailure& failure = *call.failure->load(std::memory_order_acquire);
  try {
    if (!failure.failed()) call.function();
  } catch (...) {
    failure.keep(std::current_exception());
  }
  call.over.store(true, std::memory_order_release);
}

}  // namespace headrace
