#include "headrace/devices/cpu/math/onednn_program.h"

#include <utility>

#include "headrace/devices/cpu/math/workspace.h"

namespace headrace {

Place OneDnnProgram::reserve(std::size_t bytes) {
  const Place place{.offset = workspace_bytes_};
  workspace_bytes_ += Workspace::align(bytes);
  return place;
}

void OneDnnProgram::add(const dnnl::primitive& primitive, const std::vector<Argument>& arguments) {
  onednn_.guard("binding a primitive", [&] {
    Step step{.function = {}, .primitive = primitive, .arguments = {}};
    for (const Argument& argument : arguments) {
      if (argument.layout.is_zero()) continue;
      void* data = argument.place.pointer != nullptr ? argument.place.pointer : DNNL_MEMORY_NONE;
      dnnl::memory memory(argument.layout, onednn_.engine(), data);
      step.arguments.push_back({argument.name, memory.get()});
      if (argument.place.pointer == nullptr) floating_.push_back({memory, argument.place.offset});
      memories_.push_back(std::move(memory));
    }
    steps_.push_back(std::move(step));
  });
}

void OneDnnProgram::add(std::function<void(std::byte*)> function) {
  steps_.push_back({.function = std::move(function), .primitive = {}, .arguments = {}});
}

void OneDnnProgram::run() {
  std::byte* workspace = Workspace::of_this_thread().reserve(workspace_bytes_);
  onednn_.guard("running a primitive", [&] {
    if (workspace != bound_) bind(workspace);
    for (const Step& step : steps_) {
      if (step.function) {
        step.function(workspace);
        continue;
      }
      dnnl::error::wrap_c_api(
          dnnl_primitive_execute(step.primitive.get(), onednn_.stream().get(),
                                 static_cast<int>(step.arguments.size()), step.arguments.data()),
          "could not execute a primitive");
    }
  });
}

void OneDnnProgram::bind(std::byte* workspace) {
  for (Floating& argument : floating_) argument.memory.set_data_handle(workspace + argument.offset);
  bound_ = workspace;
}

}  // namespace headrace
