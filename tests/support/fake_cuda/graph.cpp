#include "headrace/tests/support/fake_cuda/graph.h"

#include <algorithm>
#include <utility>

namespace headrace::test::fake_cuda {
namespace {

std::size_t branch_of(CUgraph_st& graph, cudaStream_t stream) {
  const auto found = std::ranges::find(graph.streams, stream);
  const auto branch = static_cast<std::size_t>(found - graph.streams.begin());
  if (found == graph.streams.end()) graph.streams.push_back(stream);
  return branch;
}

// Returns whether `node` runs before `other` if the edges allow both.
bool precedes(const Node& node, const Node& other, GraphOrder order) {
  if (order == GraphOrder::kEarliestBranchFirst) return node.branch < other.branch;
  return order == GraphOrder::kLatestBranchFirst && node.branch > other.branch;
}

}  // namespace

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}
int device_of(cudaStream_t stream) { return is_default(stream) ? current_device() : stream->device; }
CUgraph_st* capture_of(cudaStream_t stream) { return is_default(stream) ? nullptr : stream->capture; }

cudaError_t submit(cudaStream_t stream, std::function<void()> work, const char* name) {
  if (capture_of(stream) == nullptr) {
    work();
    return cudaSuccess;
  }
  CUgraph_st& graph = *stream->capture;
  graph.nodes.push_back({.work = std::move(work),
                         .name = name,
                         .branch = branch_of(graph, stream),
                         .after = std::exchange(stream->last, {graph.nodes.size()})});
  return cudaSuccess;
}

void run(const CUgraph_st& graph, GraphOrder order) {
  std::vector<bool> done(graph.nodes.size(), false);
  const auto ready = [&](std::size_t i) {
    return !done[i] && std::ranges::all_of(graph.nodes[i].after, [&](std::size_t before) { return done[before]; });
  };
  for (std::size_t left = graph.nodes.size(); left > 0; --left) {
    std::size_t next = graph.nodes.size();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!ready(i)) continue;
      if (next == graph.nodes.size() || precedes(graph.nodes[i], graph.nodes[next], order)) next = i;
    }
    graph.nodes[next].work();
    done[next] = true;
  }
}

bool joined(const CUgraph_st& graph, const Nodes& last) {
  Nodes reached = last;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (reached.contains(i)) reached.insert(graph.nodes[i].after.begin(), graph.nodes[i].after.end());
  }
  return reached.size() == graph.nodes.size();
}

Branches branches_of(const CUgraph_st& graph) {
  Branches branches;
  for (const CUstream_st* stream : graph.streams)
    branches.push_back({.priority = stream->priority, .kernels = {}});
  for (const Node& node : graph.nodes) branches[node.branch].kernels.push_back(node.name);
  return branches;
}

}  // namespace headrace::test::fake_cuda
