#include "headrace/train/graph.h"

#include <fmt/format.h>

#include <iterator>

namespace headrace {

std::string summarize(const Graph& graph) {
  std::string text;
  const auto line = [&](const auto& name, const auto& kind, const auto& shape, const auto& count) {
    fmt::format_to(std::back_inserter(text), "{:<28} {:<20} {:<20} {:>12}\n", name, kind, shape, count);
  };
  line("Layer", "Kind", "Result", "Parameters");
  std::int64_t trained = 0, state = 0;
  for (const LayerInfo& layer : graph.layers()) {
    line(layer.name, layer.kind, layer.shape.to_string(), layer.parameters + layer.state);
    trained += layer.parameters;
    state += layer.state;
  }
  fmt::format_to(std::back_inserter(text), "Total parameters: {}, trained: {}, not trained: {}\n", trained + state,
                 trained, state);
  return text;
}

}  // namespace headrace
