// Streams, events and captured graphs of the fake runtime, and how a graph runs again. Private to the fake.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "headrace/tests/support/fake_cuda/runtime.h"

namespace headrace::test::fake_cuda {

using Nodes = std::set<std::size_t>;  // of a graph, by number

struct Node {
  std::function<void()> work;
  std::string name;
  std::size_t branch = 0;
  Nodes after;  // it waits for these
};

}  // namespace headrace::test::fake_cuda

struct CUgraph_st {
  std::vector<headrace::test::fake_cuda::Node> nodes;  // in the order of submission, which respects every edge
  std::vector<CUstream_st*> streams = {};              // by branch
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  int priority = 0;
  int device = 0;
  CUgraph_st* capture = nullptr;               // to which it belongs; owned by the stream that began it
  headrace::test::fake_cuda::Nodes last = {};  // of it: what its next node waits for
};
struct CUevent_st {
  int device = 0;
  bool timed = false, recorded = false;
  std::atomic<bool> pending{false};  // what it marks is not over, as far as a query tells
  std::chrono::steady_clock::time_point at = {};
  CUgraph_st* capture = nullptr;               // within which it was recorded, as an edge
  headrace::test::fake_cuda::Nodes last = {};  // of it: what it stands for
};

namespace headrace::test::fake_cuda {

// The default streams belong to the current device and are never captured here.
bool is_default(cudaStream_t stream);
int device_of(cudaStream_t stream);
CUgraph_st* capture_of(cudaStream_t stream);  // null: none

// Does the work now or, if the stream is being captured, at every launch of its graph.
cudaError_t submit(cudaStream_t stream, std::function<void()> work, const char* name = "");

// Does the work of all nodes, in an order that the edges allow.
void run(const CUgraph_st& graph, GraphOrder order);

// Returns whether `last`, the end of the capturing stream, comes after every node.
bool joined(const CUgraph_st& graph, const Nodes& last);

Branches branches_of(const CUgraph_st& graph);

}  // namespace headrace::test::fake_cuda
