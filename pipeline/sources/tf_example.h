// What a tf.train.Example says about an image.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/pipeline/sources.h"

namespace headrace {

struct TfExample {
  std::span<const std::byte> image;  // encoded; into the payload
  std::int64_t label = 0;
};

// Throws Error(kDataCorrupt): the payload is no Example, or lacks a key, naming those it has.
TfExample parse_tf_example(std::span<const std::byte> payload, const TfRecordOptions& options);

}  // namespace headrace
