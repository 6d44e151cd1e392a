// Checks the numbers of a step: finite losses and tensors, class numbers in range, examples counted by the loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/tensor.h"
#include "headrace/train/losses.h"
#include "headrace/train/step/objective.h"
#include "headrace/train/step/step_slot.h"

namespace headrace {

// Throws DataError naming the record if one of a shard's class numbers is out of range.
void check_class_numbers(const Objective& objective, const StepSlot& step, const ShardSlot& shard);

// Throws if a shard's sum of losses is not finite: DataError naming the record if a class number is out of range,
// else Error naming the step.
void check_numbers(const Objective& objective, const StepSlot& step, const ShardSlot& shard);

// Throws Error saying that the loss did not add its examples to its sums.
[[noreturn]] void throw_miscounted(const LossFunction& loss, std::uint64_t step);

// Finds the first number that is not finite, in the order of one stream. For finding errors: copies what it looks
// at to the host.
class NumberProbe {
 public:
  struct Found {
    std::size_t look = 0;  // zero-based, among all looks
    std::string what;
    Shape shape = {};
    std::int64_t element = 0;
    float value = 0;
  };

  explicit NumberProbe(Stream& stream) : stream_(stream) {}

  // Submits a look at the first `elements` of a tensor. Tensors of other types than f32 and bf16 are skipped, but
  // count as looks.
  void look(std::string what, const TensorView& tensor, std::int64_t elements);
  // Returns the first look that found something. REQUIRES: the stream was synchronised.
  const std::optional<Found>& found() const noexcept { return found_; }

 private:
  void examine(const std::byte* copy, std::size_t elements, const TensorView& tensor, const std::string& what,
               std::size_t look);

  Stream& stream_;
  std::vector<Buffer> copies_;  // pinned; the last is the largest, those before it may still be in use
  std::size_t looks_ = 0;
  std::optional<Found> found_;  // written by the stream
};

// Returns the index of the first value that is not finite; std::nullopt if all are.
std::optional<std::size_t> first_not_finite(const float* values, std::size_t count);

}  // namespace headrace
