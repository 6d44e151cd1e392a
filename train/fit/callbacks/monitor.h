// A value of each epoch that a callback watches, and the best of them so far.
#pragma once

#include <optional>
#include <string>

#include "headrace/train/callbacks.h"

namespace headrace {

class Monitor {
 public:
  // `who` watches, for messages. ConfigError for a min_delta below 0.
  Monitor(std::string who, std::string name, Better mode, double min_delta);

  // The epoch's value; nothing where the epoch was stopped and lacks it. ConfigError listing the names otherwise.
  std::optional<double> value(const EpochReport& report) const;
  // Whether it is better than the best so far by more than min_delta; then it is the best.
  bool improves(double value);

  std::optional<double> best = std::nullopt;

 private:
  std::string who_, name_;
  bool higher_;
  double min_delta_;
};

}  // namespace headrace
