// Watches a value of each epoch for a callback, and keeps the best so far.
#pragma once

#include <optional>
#include <string>

#include "headrace/train/callbacks.h"

namespace headrace {

class Monitor {
 public:
  // `who`: the callback, for messages. Throws ConfigError for a min_delta below 0.
  Monitor(std::string who, std::string name, Better mode, double min_delta);

  // Returns the epoch's value; std::nullopt if a stopped epoch lacks it. Else throws ConfigError listing names.
  std::optional<double> value(const EpochReport& report) const;
  // Returns whether the value is better than the best so far by more than min_delta; it then becomes the best.
  bool improves(double value);

  std::optional<double> best = std::nullopt;

 private:
  std::string who_, name_;
  bool higher_;
  double min_delta_;
};

}  // namespace headrace
