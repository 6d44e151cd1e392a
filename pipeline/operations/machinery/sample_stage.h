// The stages of a plan that work on one sample.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

struct DecodeStage {
  DecodeOptions options = {};
  std::string first_image = {};  // the record that gave the options' size; empty: the size was given
};

// One operation of the plan with the number that keys its random draws: its place among all operations.
struct PlannedOperation {
  Operation operation;
  std::uint16_t number = 0;
};

// Decodes every encoded field, or does one operation.
using SampleStage = std::variant<DecodeStage, PlannedOperation>;

// Returns the field after decoding, if it is an encoded image; otherwise unchanged.
Field decoded_field(const Field& field, const DecodeStage& stage);

// Returns "decode(224 x 224)", "pad_crop(32, pad=4, zero)", for explain() and fingerprints.
std::string describe(const DecodeStage& stage);
std::string describe(const SampleStage& stage);

}  // namespace headrace
