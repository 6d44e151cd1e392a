// Watches a value of each epoch, and keeps the best so far.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/train/callbacks.h"
#include "headrace/train/model.h"

namespace headrace {

// Returns what a fit's History will have, in its order. `norms`: with "gradient_norm".
std::vector<HistoryList> history_lists(const Model& model, bool validates, bool norms);

class Monitor {
 public:
  // `who` watches it, for messages, and `option` is what says which way is better. Throws ConfigError for a
  // min_delta below 0.
  Monitor(std::string who, std::string name, std::string option, Better mode, double min_delta = 0);

  // Throws ConfigError if the value is none of the lists, or if nothing says which way is better.
  void begin(const std::vector<HistoryList>& lists);
  // Returns the epoch's value; std::nullopt if a stopped epoch lacks it. Else throws ConfigError listing names.
  std::optional<double> value(const EpochReport& report) const;
  // Returns whether the value is better than the best so far by more than min_delta; it then becomes the best.
  // REQUIRES: begin() was called, or the mode says which way.
  bool improves(double value);

  std::optional<double> best = std::nullopt;

 private:
  std::string who_, name_, option_;
  Better better_;
  double min_delta_;
};

}  // namespace headrace
