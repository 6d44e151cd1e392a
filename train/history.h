// What a fit saw: one list a metric, one entry an epoch.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace headrace {

// Names: "loss", each metric that is a number ("accuracy"), each term's own of a loss of several ("left_loss", see
// EpochReport::metrics), "val_loss", "val_accuracy" and so on, "steps",
// "seconds" (the whole epoch), "examples_per_second" (training alone), "input_stall_fraction",
// "exposed_copy_fraction", "device_idle_fraction", "learning_rate" (the optimizer's own after the epoch), and
// "gradient_norm" where it is known.
class History {
 public:
  // ConfigError listing the names there are.
  const std::vector<double>& operator[](const std::string& name) const;
  bool has(const std::string& name) const { return lists_.contains(name); }
  const std::map<std::string, std::vector<double>>& lists() const noexcept { return lists_; }
  std::size_t epochs() const;

  void append(const std::string& name, double value) { lists_[name].push_back(value); }

 private:
  std::map<std::string, std::vector<double>> lists_;
};

// When a value of one of its lists is better than another. kAuto: higher for accuracy, top_k and
// examples_per_second, of a validation or of one of several outputs too ("val_right/accuracy"), else lower.
enum class Better { kAuto, kLower, kHigher };
bool higher_is_better(const std::string& name, Better mode = Better::kAuto);

}  // namespace headrace
