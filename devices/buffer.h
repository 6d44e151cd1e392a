// Owned bytes of device or host memory. Move-only; freed through the allocator that made them.
#pragma once

#include <cstddef>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/tensor.h"

namespace HEADRACE_API headrace {

enum class MemoryPlace {
  kDevice,  // where the device computes (for the CPU: ordinary memory)
  kPinned,  // host memory that the device copies from and to without blocking
};

// Frees buffers: a device, or a stream in its order. Must outlive every buffer it made.
class BufferOwner {
 public:
  virtual ~BufferOwner() = default;
  // Never blocks on work that has not been submitted yet.
  virtual void release(void* data, std::size_t bytes, MemoryPlace place) noexcept = 0;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(BufferOwner& owner, void* data, std::size_t bytes, MemoryPlace place) noexcept
      : owner_(&owner), data_(data), bytes_(bytes), place_(place) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) owner_->release(data_, bytes_, place_);
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  std::size_t size() const noexcept { return bytes_; }
  MemoryPlace place() const noexcept { return place_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  // Gives up the bytes, which the caller must release to the owner. Empty afterwards.
  void* detach() noexcept { return std::exchange(data_, nullptr); }

  // Returns a typed view that starts `offset` bytes into the buffer. REQUIRES: the view lies within size().
  TensorView view(const Shape& shape, DType dtype, std::size_t offset = 0) const noexcept {
    return {data() + offset, shape, dtype};
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(place_, other.place_);
  }

  BufferOwner* owner_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryPlace place_ = MemoryPlace::kDevice;
};

}  // namespace headrace
