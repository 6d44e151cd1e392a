// Nodes and graphs in Python: they may outlive the net being built, and then throw.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/graph.h"

namespace headrace::python {

// The graph of a net while its function runs.
class OpenGraph {
 public:
  // `devices` live as long as the net is built.
  OpenGraph(Graph& graph, const DeviceGroup& devices) : graph_(&graph), devices_(&devices) {}
  OpenGraph(const OpenGraph&) = delete;
  OpenGraph& operator=(const OpenGraph&) = delete;

  // Throws ConfigError once the net is built.
  Graph& get() const;
  // Returns the net of this JSON text, the same one each time: calls of it share their variables. `factories`:
  // those of its custom layers, see python_layer_makers().
  const Graph& read(const std::string& json, const nanobind::dict& factories);
  // Calls a layer written in Python; further calls of the same object share its variables. An empty name becomes
  // `usual`, `usual`_1, ... REQUIRES: the GIL.
  Node call(const nanobind::object& layer, const std::vector<Node>& inputs, const std::string& name,
            const std::string& usual);
  bool is_closed() const noexcept { return graph_ == nullptr; }
  void close() noexcept { graph_ = nullptr; }

 private:
  // A layer that was called, and its first call.
  struct CalledLayer {
    SharedObject object;
    Node first;
  };

  Graph* graph_;
  const DeviceGroup* devices_;
  std::map<std::string, std::unique_ptr<Graph>> nets_;
  std::vector<CalledLayer> called_;
};

struct PythonNode {
  std::shared_ptr<OpenGraph> graph;
  Node node;
};

// Returns the net that a Python object describes: a function of a graph that returns one or more nodes, or the
// name of a net of train/nets.h. The function is called with the interpreter's lock. REQUIRES: `devices` lives
// until the net is built.
Net net_of_python(nanobind::object net, const DeviceGroup& devices);

}  // namespace headrace::python
