// Looks for the first number that is not finite, in the order of a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/tensor.h"

namespace headrace {

// One replica's. To find errors with: what it looks at is copied to the host.
class NumberProbe {
 public:
  struct Found {
    std::size_t look = 0;  // how many came before it
    std::string what;
    Shape shape = {};
    std::int64_t element = 0;
    float value = 0;
  };

  explicit NumberProbe(Stream& stream) : stream_(stream) {}

  // Submits a look at the first `elements` of a tensor; those of other types than f32 and bf16 are passed over,
  // but count as looks.
  void look(std::string what, const TensorView& tensor, std::int64_t elements);
  // The first of all looks that found something. The stream must have been synchronised.
  const std::optional<Found>& found() const noexcept { return found_; }

 private:
  void examine(const std::byte* copy, std::size_t elements, const TensorView& tensor, const std::string& what,
               std::size_t look);

  Stream& stream_;
  std::vector<Buffer> copies_;  // pinned; the last is the largest, those before it may still be in use
  std::size_t looks_ = 0;
  std::optional<Found> found_;  // written by the stream
};

// The first of the values that is not finite; nothing where all are.
std::optional<std::size_t> first_not_finite(const float* values, std::size_t count);

}  // namespace headrace
