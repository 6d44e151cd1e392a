// Words of the trainer's Python interface and their values.
#pragma once

#include <optional>
#include <string>

#include "headrace/bindings/python/names.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/losses.h"

namespace headrace::python {

inline Activation activation_of(const std::optional<std::string>& word) {
  if (!word) return Activation::kNone;
  return choose<Activation>(
      "activation", *word,
      {{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"silu", Activation::kSilu}});
}

inline Reduction reduction_of(const std::string& word) {
  return choose<Reduction>("reduction", word, {{"mean", Reduction::kMean}, {"sum", Reduction::kSum}});
}

inline Better better_of(const std::string& word) {
  return choose<Better>("mode", word,
                        {{"auto", Better::kAuto}, {"min", Better::kLower}, {"max", Better::kHigher}});
}

}  // namespace headrace::python
