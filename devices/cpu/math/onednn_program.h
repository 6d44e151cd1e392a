// What one call of a kernel does with oneDNN: a few primitives and functions in a row. Private to the CPU backend.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/devices/cpu/math/onednn.h"

namespace headrace {

// Where an argument lies: memory of the caller's, or so many bytes into the stream's workspace.
struct Place {
  void* pointer = nullptr;
  std::size_t offset = 0;

  void* in(std::byte* workspace) const noexcept { return pointer != nullptr ? pointer : workspace + offset; }
};

// Made when the kernel is submitted: run() then allocates nothing (but the workspace, once a thread). The
// arguments' memory must live until the last run.
class OneDnnProgram {
 public:
  explicit OneDnnProgram(OneDnn& onednn) : onednn_(onednn) {}

  Place reserve(std::size_t bytes);

  struct Argument {
    int name;  // DNNL_ARG_SRC ...
    dnnl::memory::desc layout;
    Place place;
  };
  // Steps, run in the order of addition. Functions must not use the workspace otherwise.
  void add(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
  void add(std::function<void(std::byte* workspace)> function);

  // On a stream's worker thread; one run at a time.
  void run();

 private:
  struct Step {
    std::function<void(std::byte*)> function;  // or, where empty:
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  struct Floating {  // an argument in the workspace
    dnnl::memory memory;
    std::size_t offset;
  };

  void bind(std::byte* workspace);

  OneDnn& onednn_;
  std::vector<Step> steps_;
  std::vector<dnnl::memory> memories_;  // owns what Step::arguments names
  std::vector<Floating> floating_;
  std::size_t workspace_bytes_ = 0;
  std::byte* bound_ = nullptr;
};

}  // namespace headrace
