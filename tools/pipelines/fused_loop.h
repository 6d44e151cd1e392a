// Minimal code for a pipeline's work on samples decoded in memory: one loop, without the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/source.h"
#include "headrace/tools/pipelines/cifar_image.h"

namespace headrace::tools {

// The first field of each record, decoded, and its label if the source has one.
struct DecodedSamples {
  std::size_t count = 0, sample_bytes = 0;
  LargeMemory bytes;
  std::vector<std::int64_t> labels;
};
// Throws DataError if encoded images are not 32 x 32 pixels. If decoding takes a while, a line on standard error
// says how long.
DecodedSamples decoded_samples(const Source& source);

// Thread-safe.
class FusedLoop {
 public:
  // `pipeline`: "trivial", "mnist-train", "fashion-train", "cifar-train" or "cifar-eval". Samples come in `order`;
  // empty: in storage order.
  FusedLoop(const std::string& pipeline, DecodedSamples samples, std::vector<std::uint32_t> order = {});
  static bool exists(const std::string& pipeline);

  std::size_t samples() const { return samples_.count; }
  // Returns the bytes of one sample's tensor in a batch.
  std::size_t row_bytes() const;

  // Makes a batch of the samples at the positions [first, first + count) of the order. `labels` is unchanged if
  // there are none.
  void make(std::size_t first, std::size_t count, std::minstd_rand& random, std::byte* rows,
            std::int64_t* labels) const;

 private:
  enum class Work { kCopy, kScale, kNormalize, kAugment };

  static Work work_of(const std::string& pipeline);
  std::size_t at(std::size_t position) const { return order_.empty() ? position : order_[position]; }
  const std::uint8_t* sample(std::size_t position) const;
  void copy(std::size_t first, std::size_t count, std::byte* rows) const;
  void augment(std::size_t first, std::size_t count, std::minstd_rand& random, float* rows) const;

  Work work_;
  DecodedSamples samples_;
  std::vector<std::uint32_t> order_;
  CifarNormal normal_;
};

}  // namespace headrace::tools
