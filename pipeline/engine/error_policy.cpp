#include "headrace/pipeline/bad_record.h"

#include "headrace/devices/base/error.h"

namespace headrace {

const char* to_string(OnError on_error) noexcept {
  switch (on_error) {
    case OnError::kFail: return "fail";
    case OnError::kSkip: return "skip";
    case OnError::kSubstitute: return "substitute";
  }
  return "unknown";
}

OnError parse_on_error(const std::string& word) {
  for (const OnError one : {OnError::kFail, OnError::kSkip, OnError::kSubstitute}) {
    if (word == to_string(one)) return one;
  }
  throw ConfigError("there is no error policy '" + word + "'", "it is fail, skip or substitute");
}

}  // namespace headrace
