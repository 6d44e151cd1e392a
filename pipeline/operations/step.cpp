#include "headrace/pipeline/operations/step.h"

#include <fmt/format.h>

#include "headrace/devices/base/check.h"

namespace headrace {

std::size_t Scratch::bytes() const noexcept {
  std::size_t between = made.capacity();
  for (const std::vector<std::byte>& field : fields) between += field.capacity();
  return between + canvas.bytes.capacity() + decoded.capacity() + turned.capacity() + results[0].capacity() +
         results[1].capacity() + sample.capacity() + read.capacity();
}

void Scratch::free_buffers() noexcept {
  for (std::vector<std::byte>* buffer : {&decoded, &turned, &results[0], &results[1], &sample, &read}) {
    std::vector<std::byte>().swap(*buffer);
  }
  std::vector<std::byte>().swap(made);
  for (std::vector<std::byte>& field : fields) std::vector<std::byte>().swap(field);
  canvas = {};
}

std::span<std::byte> StepOutput::take(std::size_t bytes) {
  if (buffer_ != nullptr) {
    if (buffer_->size() < bytes) buffer_->resize(bytes);
    return std::span(*buffer_).first(bytes);
  }
  HEADRACE_CHECK(row_.size() == bytes, fmt::format("a result of {} bytes for a row of {}", bytes, row_.size()));
  return row_;
}

}  // namespace headrace
