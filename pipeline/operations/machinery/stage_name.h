// A part of a program that is timed by itself.
#pragma once

#include <string>

#include "headrace/pipeline/stats.h"

namespace headrace {

struct StageName {
  std::string name;
  StageKind kind = StageKind::kOperate;
};

}  // namespace headrace
