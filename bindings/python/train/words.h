// Words of the trainer's Python interface and their values.
#pragma once

#include <optional>
#include <string>

#include "headrace/bindings/python/names.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/layers.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"

namespace headrace::python {

inline Activation activation_of(const std::optional<std::string>& word) {
  return word ? activation_named(*word) : Activation::kNone;
}

inline Initializer initializer_of(const std::string& word) {
  return choose<Initializer>("initializer", word,
                             {{"glorot_uniform", Initializer::kGlorotUniform},
                              {"he_uniform", Initializer::kHeUniform},
                              {"fan_in_uniform", Initializer::kFanInUniform},
                              {"dirac", Initializer::kDirac},
                              {"unit_deviation", Initializer::kUnitDeviation}});
}

inline Reduction reduction_of(const std::string& word) {
  return choose<Reduction>("reduction", word, {{"mean", Reduction::kMean}, {"sum", Reduction::kSum}});
}

inline Average average_of(const std::string& word) {
  return choose<Average>("average", word,
                         {{"macro", Average::kMacro},
                          {"micro", Average::kMicro},
                          {"weighted", Average::kWeighted},
                          {"none", Average::kNone}});
}

inline Better better_of(const std::string& word) {
  return choose<Better>("word for what is better", word,
                        {{"auto", Better::kAuto}, {"min", Better::kLower}, {"max", Better::kHigher}});
}

}  // namespace headrace::python
