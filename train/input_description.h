// What a net is to be fed with, as data: how a program that does not know the model makes it of a data set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operation.h"
#include "headrace/train/views.h"

namespace HEADRACE_API headrace {

// Operations that draw no random numbers.
using InputOperation = std::variant<Resize, CenterCrop, Normalize, Cast, ToLayout, FlattenSample, OneHot>;

// From a source to batches. Images that are JPEG or PNG are decoded first. The default is that of data which fit
// as they are.
struct InputDescription {
  DecodeOptions decode = {};
  std::vector<InputOperation> operations = {};  // in this order
  std::vector<View> views = {};                 // of an evaluation
  std::int64_t batch = 500;                     // global
};

// As a JSON object, and back. ConfigError with the place for what cannot be.
std::string to_json(const InputDescription& input);
InputDescription input_description_from_json(std::string_view json);

// The source's records in order, decoded, operated on and batched.
Dataset described_dataset(const SourcePtr& source, const InputDescription& input);

}  // namespace headrace
