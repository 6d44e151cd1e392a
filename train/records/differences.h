// Collects the differences between a saved training and the one that is to continue it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "headrace/train/graph.h"
#include "headrace/train/model.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {

class Differences {
 public:
  // Adds "seed was 5, is 6".
  void add(const std::string& what, const std::string& was, const std::string& is);
  template <typename Value>
  void compare(const std::string& what, const Value& was, const Value& is) {
    if (was != is) add(what, fmt::format("{}", was), fmt::format("{}", is));
  }
  std::size_t size() const noexcept { return texts_.size(); }

  // Throws ConfigError naming the differences from the training in the file, if there are any.
  void require_none(const std::string& file) const;

 private:
  std::vector<std::string> texts_;
};

// Compares the net in the file with that of a model: layers and their attributes.
void compare_graphs(const TensorFile& file, const Graph& graph, Differences& differ);

// Compares the options that the models are compiled with. Schedules, and other optimizer options that follow from
// the length of a run, may differ: returns whether they do.
bool compare_compiled(const TensorFile& file, const CompileOptions& options, Differences& differ);

}  // namespace headrace
