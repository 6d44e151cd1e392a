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
  std::string first_image = {};  // the record that the options' size was taken from; empty: they came with it
};

// One operation of the plan with the number that keys its random draws: its place among all operations.
struct PlannedOperation {
  Operation operation;
  std::uint16_t number = 0;
};

// Decode every encoded field, or do one operation.
using SampleStage = std::variant<DecodeStage, PlannedOperation>;

// An encoded image's field once it is decoded; any other as it is.
Field decoded_field(const Field& field, const DecodeStage& stage);

// "decode(224 x 224)", "pad_crop(32, pad=4, zero)": as explain() shows it and as fingerprints see it.
std::string describe(const DecodeStage& stage);
std::string describe(const SampleStage& stage);

}  // namespace headrace
