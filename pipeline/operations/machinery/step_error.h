// An error in one step of a record's way.
#pragma once

#include <string>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {

// message() is "step: cause".
class StepError final : public Error {
 public:
  StepError(ErrorCode code, std::string step, std::string cause, std::string hint = {})
      : Error(code, step + ": " + cause, std::move(hint)), step_(std::move(step)), cause_(std::move(cause)) {}

  const std::string& step() const noexcept { return step_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string step_, cause_;
};

}  // namespace headrace
