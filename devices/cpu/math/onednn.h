// oneDNN's engine for one CPU device, and the primitives made for it so far. Only the files onednn*.{h,cpp} see
// oneDNN. Private to the CPU backend.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// A primitive with its preferred layouts, for one set of shapes.
struct OneDnnPlan {
  dnnl::primitive primitive;
  dnnl::memory::desc source, weights, bias, result, scratchpad;
  // Reorders between the caller's weights (`plain`) and the primitive's layout, if they differ.
  dnnl::primitive reorder;
  dnnl::memory::desc plain, reorder_scratchpad;
};

// Thread-safe.
class OneDnn {
 public:
  // Primitives may use `threads` OpenMP threads. Errors name `device`.
  OneDnn(std::string device, int threads, Bf16Products products);

  const dnnl::engine& engine() const noexcept { return engine_; }
  const dnnl::stream& stream() const noexcept { return stream_; }
  Bf16Products bf16_products() const noexcept { return products_; }

  // Returns the plan for `key`; make() runs only in the first call with that key. Throws DeviceError if oneDNN
  // cannot do it.
  using Key = std::vector<std::int64_t>;
  std::shared_ptr<const OneDnnPlan> plan(const Key& key, const std::function<OneDnnPlan()>& make);

  // Runs `function` and turns its failure into a DeviceError.
  void guard(const char* what, const std::function<void()>& function) const;

 private:
  const std::string device_;
  const int threads_;
  const Bf16Products products_;
  const dnnl::engine engine_;
  const dnnl::stream stream_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const OneDnnPlan>> plans_;  // guarded by mutex_
};

// The place of an argument: the caller's memory, or an offset in bytes into the stream's workspace.
struct Place {
  void* pointer = nullptr;
  std::size_t offset = 0;

  void* in(std::byte* workspace) const noexcept { return pointer != nullptr ? pointer : workspace + offset; }
};

// The oneDNN work of one kernel call: a sequence of primitives and functions. Made when the kernel is submitted,
// so that run() allocates nothing (except the workspace, once per thread). The arguments' memory must live until
// the last run.
class OneDnnProgram {
 public:
  explicit OneDnnProgram(OneDnn& onednn) : onednn_(onednn) {}

  Place reserve(std::size_t bytes);

  struct Argument {
    int name;  // DNNL_ARG_SRC ...
    dnnl::memory::desc layout;
    Place place;
  };
  // Add steps, which run in order of addition. Functions must not use the workspace in other ways.
  void add(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
  void add(std::function<void(std::byte* workspace)> function);
  // Adds one step of several calls of a primitive, which run at the same time, each on one thread.
  void add_single_threaded(const dnnl::primitive& primitive, const std::vector<std::vector<Argument>>& calls);

  // Runs the steps, on a stream's worker thread. REQUIRES: one run at a time.
  void run();

 private:
  struct Step {
    std::function<void(std::byte*)> function;  // or, if empty:
    dnnl::primitive primitive;
    std::vector<std::vector<dnnl_exec_arg_t>> calls;
    bool single_threaded = false;
  };
  struct Floating {  // an argument in the workspace
    dnnl::memory memory;
    std::size_t offset;
  };

  void add_call(Step& step, const std::vector<Argument>& arguments);
  void bind(std::byte* workspace);
  void run(const Step& step) const;

  OneDnn& onednn_;
  std::vector<Step> steps_;
  std::vector<dnnl::memory> memories_;  // owns the memories in Step::arguments
  std::vector<Floating> floating_;
  std::size_t workspace_bytes_ = 0;
  std::byte* bound_ = nullptr;
};

// Passes tensors to oneDNN primitives in the precision of the computation.

// A kernel bound to its arguments, ready to be submitted.
using BoundKernel = std::shared_ptr<OneDnnProgram>;

// Returns the element type of a primitive's inputs for this precision.
dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision);

// A tensor of the caller: f32, or activations and weights in bf16.
struct Operand {
  Place place;
  DType type = DType::kF32;
};

// Adds an input of `count` elements: in place, or converted in the workspace.
Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& from,
                std::int64_t count);

// The result of a primitive, `count` elements: written in place in the caller's type, or as f32 in the workspace
// if finish() has work to do.
class Result {
 public:
  // finish() applies the activation: oneDNN's own ReLU turns NaN into 0.
  Result(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& to, std::int64_t count,
         Activation activation = Activation::kNone);

  dnnl::memory::data_type type() const noexcept { return type_; }
  const Place& place() const noexcept { return place_; }
  // Adds the steps that remain after the primitive.
  void finish(OneDnnProgram& program) const;

 private:
  Operand to_;
  std::int64_t count_;
  Activation activation_;
  dnnl::memory::data_type type_;
  Place place_;
};

// Returns the attributes of every primitive here: the scratchpad comes from the workspace.
dnnl::primitive_attr attributes();

}  // namespace headrace
