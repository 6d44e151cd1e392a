// Helpers of callbacks: their state as JSON text, and the value of each epoch that some watch.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/model.h"

namespace headrace {

namespace events {
class Histogram;  // of tensorboard_event.proto
}

// A callback's state as JSON text.

// Calls read(json). Throws ConfigError naming the callback if the state is not as expected.
template <typename Read>
void read_callback_state(const std::string& who, const std::string& text, const Read& read) {
  try {
    read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("the state of {} cannot be read: {}", who, error.what()),
                      "resume from another checkpoint, or without this callback");
  }
}

inline nlohmann::json optional_number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

inline std::optional<double> optional_number(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

// Watches a value of each epoch, and keeps the best so far.

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

// Computes histograms as TensorBoard draws them.

// Returns the histogram of the finite values, in 30 equal buckets from the minimum to the maximum; a single one if
// all are equal, none if there are no values.
events::Histogram histogram_of(std::span<const float> values);

}  // namespace headrace
