// Nodes and graphs in Python: they may outlive the net being built, and then throw.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/train/graph.h"

#include "headrace/bindings/python/train/bindings.h"

namespace headrace::python {

// The graph of a net while its function runs.
class OpenGraph {
 public:
  explicit OpenGraph(Graph& graph) : graph_(&graph) {}

  // Throws ConfigError once the net is built.
  Graph& get() const;
  bool is_closed() const noexcept { return graph_ == nullptr; }
  void close() noexcept { graph_ = nullptr; }

 private:
  Graph* graph_;
};

struct PythonNode {
  std::shared_ptr<OpenGraph> graph;
  Node node;
};

// Returns the net that a Python object describes: a function of a graph that returns one or more nodes, or the
// name of a net of train/nets.h. The function is called with the interpreter's lock.
Net net_of_python(nanobind::object net);

}  // namespace headrace::python
