// The function of with_labels(): a filter that is data.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/dataset.h"

namespace headrace {

struct LabelFilter {
  std::vector<std::int64_t> labels;  // sorted

  bool operator()(const ExampleView& record) const;
};

}  // namespace headrace
