// What a training that was saved and one that is to go on from it do not have in common.
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
  // "seed was 5, is 6"
  void add(const std::string& what, const std::string& was, const std::string& is);
  template <typename Value>
  void compare(const std::string& what, const Value& was, const Value& is) {
    if (was != is) add(what, fmt::format("{}", was), fmt::format("{}", is));
  }
  std::size_t size() const noexcept { return texts_.size(); }

  // ConfigError naming them, of the training in the file, where there are any.
  void require_none(const std::string& file) const;

 private:
  std::vector<std::string> texts_;
};

// Of the net in the file and that of a model: layers and their attributes.
void compare_graphs(const TensorFile& file, const Graph& graph, Differences& differ);

// Of what a model is compiled with. Schedules, and what else an optimizer makes of the length of a run, may
// differ: returns whether they do.
bool compare_compiled(const TensorFile& file, const CompileOptions& options, Differences& differ);

}  // namespace headrace
