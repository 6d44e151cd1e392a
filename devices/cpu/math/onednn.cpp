#include "headrace/devices/cpu/math/onednn.h"

#include <omp.h>

#include <atomic>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace {
namespace {

// The number of OpenMP threads that this thread may use, while one lives. A primitive is made for as many as its
// maker may use: the host's number differs from the stream's.
class OmpThreads {
 public:
  explicit OmpThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~OmpThreads() { omp_set_num_threads(before_); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  int before_;
};

}  // namespace

OneDnn::OneDnn(std::string device, int threads, Bf16Products products)
    : device_(std::move(device)),
      threads_(threads),
      products_(products),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {}

std::shared_ptr<const OneDnnPlan> OneDnn::plan(const Key& key, const std::function<OneDnnPlan()>& make) {
  const std::lock_guard lock(mutex_);
  auto& slot = plans_[key];
  if (slot == nullptr) {
    guard("making a primitive", [&] {
      const OmpThreads threads(threads_);
      slot = std::make_shared<const OneDnnPlan>(make());
    });
  }
  return slot;
}

void OneDnn::guard(const char* what, const std::function<void()>& function) const {
  try {
    function();
  } catch (const dnnl::error& error) {
    const ErrorCode code = error.status == dnnl_unimplemented   ? ErrorCode::kUnsupported
                           : error.status == dnnl_out_of_memory ? ErrorCode::kOutOfMemory
                                                                : ErrorCode::kDevice;
    throw DeviceError(code, std::string(what) + " failed in oneDNN: " + error.what(), device_,
                      "ONEDNN_VERBOSE=1 in the environment shows what it tried");
  }
}

Place OneDnnProgram::reserve(std::size_t bytes) {
  const Place place{.offset = workspace_bytes_};
  workspace_bytes_ += Workspace::align(bytes);
  return place;
}

void OneDnnProgram::add_call(Step& step, const std::vector<Argument>& arguments) {
  std::vector<dnnl_exec_arg_t>& call = step.calls.emplace_back();
  for (const Argument& argument : arguments) {
    if (argument.layout.is_zero()) continue;
    void* data = argument.place.pointer != nullptr ? argument.place.pointer : DNNL_MEMORY_NONE;
    dnnl::memory memory(argument.layout, onednn_.engine(), data);
    call.push_back({argument.name, memory.get()});
    if (argument.place.pointer == nullptr) floating_.push_back({memory, argument.place.offset});
    memories_.push_back(std::move(memory));
  }
}

void OneDnnProgram::add(const dnnl::primitive& primitive, const std::vector<Argument>& arguments) {
  onednn_.guard("binding a primitive", [&] {
    Step step{.function = {}, .primitive = primitive, .calls = {}};
    add_call(step, arguments);
    steps_.push_back(std::move(step));
  });
}

void OneDnnProgram::add_single_threaded(const dnnl::primitive& primitive,
                                        const std::vector<std::vector<Argument>>& calls) {
  onednn_.guard("binding a primitive", [&] {
    Step step{.function = {}, .primitive = primitive, .calls = {}, .single_threaded = true};
    for (const std::vector<Argument>& arguments : calls) add_call(step, arguments);
    steps_.push_back(std::move(step));
  });
}

void OneDnnProgram::add(std::function<void(std::byte*)> function) {
  steps_.push_back({.function = std::move(function), .primitive = {}, .calls = {}});
}

void OneDnnProgram::run() {
  std::byte* workspace = Workspace::of_this_thread().reserve(workspace_bytes_);
  onednn_.guard("running a primitive", [&] {
    if (workspace != bound_) bind(workspace);
    for (const Step& step : steps_) step.function ? step.function(workspace) : run(step);
  });
}

void OneDnnProgram::run(const Step& step) const {
  const auto execute = [&](const std::vector<dnnl_exec_arg_t>& call) {
    return dnnl_primitive_execute(step.primitive.get(), onednn_.stream().get(), static_cast<int>(call.size()),
                                  call.data());
  };
  std::atomic<dnnl_status_t> status = dnnl_success;
  if (step.single_threaded) {
    parallel_ranges(std::ssize(step.calls), 1, [&](std::int64_t begin, std::int64_t end) {
      const OmpThreads one(1);
      for (std::int64_t i = begin; i < end; ++i) {
        if (const dnnl_status_t failed = execute(step.calls[static_cast<std::size_t>(i)])) status = failed;
      }
    });
  } else {
    status = execute(step.calls.front());
  }
  dnnl::error::wrap_c_api(status, "could not execute a primitive");
}

void OneDnnProgram::bind(std::byte* workspace) {
  for (Floating& argument : floating_) argument.memory.set_data_handle(workspace + argument.offset);
  bound_ = workspace;
}

dnnl::memory::data_type input_type(const OneDnn& onednn, Precision precision) {
  const bool native = precision == Precision::kBF16 && onednn.bf16_products() == Bf16Products::kNative;
  return native ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Place add_input(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& from,
                std::int64_t count) {
  const Place given = from.place;
  const auto elements = static_cast<std::size_t>(count);
  if (input_type(onednn, precision) == dnnl::memory::data_type::bf16) {
    if (from.type == DType::kBF16) return given;
    const Place to = program.reserve(elements * sizeof(BFloat16));
    program.add([=](std::byte* workspace) {
      cpu::to_bf16(static_cast<const float*>(given.in(workspace)), static_cast<BFloat16*>(to.in(workspace)),
                   count);
    });
    return to;
  }
  if (from.type == DType::kF32 && precision == Precision::kF32) return given;
  const Place to = program.reserve(elements * sizeof(float));
  program.add([=, type = from.type](std::byte* workspace) {
    auto* values = static_cast<float*>(to.in(workspace));
    if (type == DType::kBF16)
      return cpu::from_bf16(static_cast<const BFloat16*>(given.in(workspace)), values, count);
    cpu::round_to_bf16(static_cast<const float*>(given.in(workspace)), values, count);
  });
  return to;
}

Result::Result(OneDnnProgram& program, const OneDnn& onednn, Precision precision, const Operand& to,
               std::int64_t count, Activation activation)
    : to_(to), count_(count), activation_(activation) {
  // The ReLU of a rounded number is the rounded ReLU.
  const bool exact = activation == Activation::kNone || activation == Activation::kRelu;
  type_ = to.type == DType::kBF16 && exact ? input_type(onednn, precision) : dnnl::memory::data_type::f32;
  const bool direct = to.type == DType::kF32 || type_ == dnnl::memory::data_type::bf16;
  place_ = direct ? to.place : program.reserve(static_cast<std::size_t>(count) * sizeof(float));
}

void Result::finish(OneDnnProgram& program) const {
  if (to_.type == DType::kBF16 && type_ == dnnl::memory::data_type::f32) {
    program.add([*this](std::byte* workspace) {
      cpu::activate(activation_, static_cast<const float*>(place_.in(workspace)),
                    static_cast<BFloat16*>(to_.place.in(workspace)), count_);
    });
  } else if (activation_ != Activation::kNone) {
    program.add([*this](std::byte* workspace) {
      cpu::with_type(to_.type, [&]<typename T>(T) {
        T* y = static_cast<T*>(place_.in(workspace));
        cpu::activate(activation_, y, y, count_);
      });
    });
  }
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace headrace
