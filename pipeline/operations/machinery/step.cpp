#include "headrace/pipeline/operations/machinery/step.h"

#include <fmt/format.h>

#include "headrace/devices/base/failures.h"

namespace headrace {
namespace {

// The shape of a raw field whose first extent alone differs from record to record.
Shape shape_of_length(const Shape& shape, std::size_t element_bytes, std::size_t bytes) {
  const Shape rest = shape.without_front();
  const std::size_t one = static_cast<std::size_t>(rest.elements()) * element_bytes;
  return rest.with_front(one == 0 ? 0 : static_cast<std::int64_t>(bytes / one));
}

}  // namespace

FieldView view_of(const Field& field, std::span<const std::byte> bytes) noexcept {
  if (field.encoding == Encoding::kImage) {
    return {.bytes = bytes, .shape = Shape{static_cast<std::int64_t>(bytes.size())}};
  }
  if (!field.shape.is_dynamic()) return {.bytes = bytes, .shape = field.shape};
  return {.bytes = bytes, .shape = shape_of_length(field.shape, size_of(field.dtype), bytes.size())};
}

StepError name_step(const std::string& name, const std::exception& cause) {
  if (const auto* error = dynamic_cast<const Error*>(&cause)) {
    return {error->code(), name, error->message(), error->hint()};
  }
  if (is_bare_refusal(cause)) return name_step(name, explain_refusal(cause, "a sample"));
  return {ErrorCode::kInvalidArgument, name, cause.what()};
}

std::size_t Scratch::bytes() const noexcept {
  std::size_t between = made.capacity();
  for (const std::vector<std::byte>& field : fields) between += field.capacity();
  for (const std::vector<std::byte>& sample : samples_made) between += sample.capacity();
  return between + canvas.bytes.capacity() + decoded.capacity() + turned.capacity() + unmirrored.capacity() +
         results[0].capacity() + results[1].capacity() + read.capacity() + stored_index.capacity() +
         jpeg_index.bytes();
}

void Scratch::free_buffers() noexcept {
  for (std::vector<std::byte>* buffer :
       {&decoded, &turned, &unmirrored, &results[0], &results[1], &read, &stored_index}) {
    std::vector<std::byte>().swap(*buffer);
  }
  std::vector<std::byte>().swap(made);
  for (std::vector<std::byte>& field : fields) std::vector<std::byte>().swap(field);
  samples_made.clear();
  canvas = {};
}

std::span<std::byte> Scratch::grow(std::vector<std::byte>& buffer, std::size_t bytes) {
  if (buffer.capacity() < bytes) {
    std::vector<std::byte>().swap(buffer);  // so that the old and the new one do not coexist
    charge(bytes);
    try {
      buffer.reserve(bytes);
    } catch (const std::bad_alloc&) {
      throw no_memory_for("a compute thread's working memory", bytes);
    }
  }
  if (buffer.size() < bytes) buffer.resize(bytes);
  return std::span(buffer).first(bytes);
}

std::span<std::byte> StepOutput::take(std::size_t bytes) {
  if (buffer_ != nullptr) return scratch_->grow(*buffer_, bytes);
  HEADRACE_CHECK(row_.size() == bytes, fmt::format("a result of {} bytes for a row of {}", bytes, row_.size()));
  return row_;
}

}  // namespace headrace
