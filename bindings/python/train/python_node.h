// Nodes and graphs in Python: they may outlive the net being built, and then throw.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/train/graph.h"

#include "headrace/bindings/python/train/bindings.h"

namespace headrace::python {

// The graph of a net while its function runs.
class OpenGraph {
 public:
  explicit OpenGraph(Graph& graph) : graph_(&graph) {}
  OpenGraph(const OpenGraph&) = delete;
  OpenGraph& operator=(const OpenGraph&) = delete;

  // Throws ConfigError once the net is built.
  Graph& get() const;
  // Returns the net of this JSON text, the same one each time: calls of it share their variables.
  const Graph& read(const std::string& json);
  bool is_closed() const noexcept { return graph_ == nullptr; }
  void close() noexcept { graph_ = nullptr; }

 private:
  Graph* graph_;
  std::map<std::string, std::unique_ptr<Graph>> nets_;
};

struct PythonNode {
  std::shared_ptr<OpenGraph> graph;
  Node node;
};

// Returns the net that a Python object describes: a function of a graph that returns one or more nodes, or the
// name of a net of train/nets.h. The function is called with the interpreter's lock.
Net net_of_python(nanobind::object net);

}  // namespace headrace::python
