#include "headrace/devices/cpu/math/class_counts.h"

#include <algorithm>

namespace headrace::cpu {
namespace {

// -1 where it is no class.
std::int64_t class_of(const ClassRows& of, std::int64_t row) {
  if (of.labels.dtype == DType::kF32) {
    const float* target = of.labels.as<float>() + row * of.classes;
    return std::max_element(target, target + of.classes) - target;
  }
  const std::int64_t label = of.labels.as<std::int64_t>()[row];
  return label < of.classes ? std::max<std::int64_t>(label, -1) : -1;
}

// How many of the row come before the label, from the largest on, the first of equal ones first. All where it is
// NaN.
std::int64_t rank_of(const float* x, std::int64_t classes, std::int64_t label) {
  const float value = x[label];
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < classes; ++k) before += !(x[k] < value || (x[k] == value && k >= label));
  return before;
}

}  // namespace

void count_top(const ClassRows& of, int k, MetricSums& sums) {
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const std::int64_t label = class_of(of, row);
    if (label >= 0) sums.correct += rank_of(of.x + row * of.classes, of.classes, label) < k;
  }
  sums.examples += of.rows;
}

void count_confusions(const ClassRows& of, std::int64_t* counts) {
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const std::int64_t label = class_of(of, row);
    const float* x = of.x + row * of.classes;
    if (label >= 0) ++counts[label * of.classes + (std::max_element(x, x + of.classes) - x)];
  }
}

}  // namespace headrace::cpu
