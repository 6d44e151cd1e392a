// Small data sets made in memory, for tests of the trainer.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"

namespace headrace::test {

template <typename T>
Array array_of(const std::string& name, const Shape& shape, const std::vector<T>& values) {
  Array array{.field = {.name = name, .dtype = dtype_of<T>(), .shape = shape}, .bytes = {}};
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// Records given as they are; one label each.
inline Dataset labelled(const Shape& shape, const std::vector<float>& images,
                        const std::vector<std::int64_t>& labels) {
  return Dataset::from(
      in_memory("toy", labels.size(), {array_of("image", shape, images), array_of("label", Shape{}, labels)}));
}

// `count` records of `shape`: noise around a corner of the unit cube that depends on the label. Easy to learn.
inline Dataset blobs(std::int64_t count, const Shape& shape = Shape{8}, int classes = 4, std::uint64_t seed = 1) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = seed});
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(random.below(static_cast<std::uint32_t>(classes)));
    for (std::int64_t k = 0; k < shape.elements(); ++k) {
      const float corner = (k % classes) == labels.back() ? 1.0F : 0.0F;
      images.push_back(corner + 0.8F * (random.uniform() - 0.5F));
    }
  }
  return labelled(shape, images, labels);
}

// Small images in batches, of which 50 examples leave a short last one.
inline Dataset loop_data(std::int64_t batch = 16, std::int64_t examples = 50) {
  return blobs(examples, {6, 6, 2}).batch({.global_batch = batch});
}

}  // namespace headrace::test
