#include <algorithm>
#include <cmath>
#include <cstdint>

#include "headrace/devices/base/simd.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

// Sums that are added up in this order by every processor.
constexpr std::int64_t kPartialSums = 16;

struct Sums {
  std::int64_t levels = 0, squares = 0;
};

HEADRACE_SIMD void sum_levels(const std::uint8_t* from, std::int64_t count, Sums& sums) {
  constexpr std::int64_t kBlock = 1 << 14;  // whose squares fit 32 bits
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t end = std::min(count, at + kBlock);
    std::uint32_t levels = 0, squares = 0;
    for (std::int64_t i = at; i < end; ++i) {
      const std::uint32_t level = from[i];
      levels += level;
      squares += level * level;
    }
    sums.levels += levels;
    sums.squares += squares;
  }
}

// Returns the sum of (from[i] - less)^power, power being 1 or 2.
HEADRACE_SIMD_MATH double sum_floats(const float* from, std::int64_t count, double less, int power) {
  double parts[kPartialSums] = {};
  std::int64_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    for (std::int64_t j = 0; j < kPartialSums; ++j) {
      const double apart = static_cast<double>(from[i + j]) - less;
      parts[j] += power == 1 ? apart : apart * apart;
    }
  }
  for (; i < count; ++i) {
    const double apart = static_cast<double>(from[i]) - less;
    parts[i % kPartialSums] += power == 1 ? apart : apart * apart;
  }
  double sum = 0;
  for (std::int64_t j = 0; j < kPartialSums; ++j) sum += parts[j];
  return sum;
}

HEADRACE_SIMD_MATH void divide_levels(const std::uint8_t* __restrict from, std::int64_t count, float mean,
                                      float deviation, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = (static_cast<float>(from[i]) - mean) / deviation;
}

HEADRACE_SIMD_MATH void divide_floats(const float* __restrict from, std::int64_t count, float mean,
                                      float deviation, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = (from[i] - mean) / deviation;
}

float deviation_of(double variance, std::int64_t count) {
  return static_cast<float>(
      std::max(std::sqrt(std::max(variance, 0.0)), 1 / std::sqrt(static_cast<double>(count))));
}

// to[i] = (from[i] - m) / max(s, 1 / sqrt(count)): m is the mean and s the standard deviation of all numbers,
// summed exactly for u8 and in double for f32, each rounded to f32. REQUIRES: count > 0.
void standardize(const std::uint8_t* from, std::int64_t count, float* to) {
  Sums sums;
  sum_levels(from, count, sums);
  const auto n = static_cast<double>(count);
  const double mean = static_cast<double>(sums.levels) / n;
  const double variance = static_cast<double>(sums.squares) / n - mean * mean;
  divide_levels(from, count, static_cast<float>(mean), deviation_of(variance, count), to);
}

void standardize(const float* from, std::int64_t count, float* to) {
  const auto n = static_cast<double>(count);
  const double mean = sum_floats(from, count, 0, 1) / n;
  const double variance = sum_floats(from, count, mean, 2) / n;
  divide_floats(from, count, static_cast<float>(mean), deviation_of(variance, count), to);
}

class StandardizationStep final : public Step {
 public:
  explicit StandardizationStep(DType from) : from_(from) {}

  FieldView run(const FieldView& in, const StepContext& /*context*/, StepOutput& output) const override {
    const auto count = static_cast<std::int64_t>(in.bytes.size() / size_of(from_));
    const std::span<std::byte> out = output.take(static_cast<std::size_t>(count) * sizeof(float));
    auto* const to = reinterpret_cast<float*>(out.data());
    if (from_ == DType::kU8) {
      standardize(reinterpret_cast<const std::uint8_t*>(in.bytes.data()), count, to);
    } else {
      standardize(reinterpret_cast<const float*>(in.bytes.data()), count, to);
    }
    return {.bytes = out, .shape = in.shape};
  }

 private:
  DType from_;
};

class PerImageStandardizationDefinition final : public DataOperation<PerImageStandardization> {
 public:
  using DataOperation::DataOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    checks.want_type({DType::kU8, DType::kF32});
    Field after = before;
    after.dtype = DType::kF32;
    return after;
  }

  bool compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<StandardizationStep>(place.before.dtype), describe());
    return true;
  }
};

}  // namespace

OperationPtr define(PerImageStandardization options) {
  return std::make_shared<PerImageStandardizationDefinition>(options);
}

Operations per_image_standardization() { return Operation{PerImageStandardization{}}; }

}  // namespace headrace
