// Work for each replica: Strategy.run() and what its function is given.
#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/python_steps.h"
#include "headrace/train/losses.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using ReplicaFloats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Doubles = std::vector<double>;

// One replica, as long as the function runs that was given it.
class OpenReplica {
 public:
  explicit OpenReplica(const ReplicaContext& context) : context_(&context) {}

  const ReplicaContext& get() const {
    if (context_ != nullptr) return *context_;
    throw ConfigError("this replica was of a call that is over", "use the one that each call is given");
  }
  bool is_closed() const noexcept { return context_ == nullptr; }
  void close() noexcept { context_ = nullptr; }

 private:
  const ReplicaContext* context_;
};

template <typename Value>
nb::object read_as(const ReplicaContext& replica, const TensorView& view) {
  std::vector<Value> values;
  {
    const WithoutGil others_run;
    values = replica.read<Value>(view);
  }
  return array_of(std::move(values), view.shape);
}

nb::object read_view(const ReplicaContext& replica, const TensorView& view) {
  switch (view.dtype) {
    case DType::kF32: return read_as<float>(replica, view);
    case DType::kI64: return read_as<std::int64_t>(replica, view);
    case DType::kI32: return read_as<std::int32_t>(replica, view);
    case DType::kU8: return read_as<std::uint8_t>(replica, view);
    default: break;
  }
  throw ConfigError(fmt::format("a tensor of {} cannot be read as a NumPy array", to_string(view.dtype)),
                    "convert the field to float32 in the plan");
}

void require_own(const ReplicaContext& replica, const DeviceTensor& tensor) {
  if (tensor.replica == replica.index) return;
  throw ConfigError(fmt::format("the tensor is of replica {}, this is replica {}", tensor.replica, replica.index),
                    "ask for that of replica.index");
}

nb::object read_tensor(const OpenReplica& open, const DeviceTensor& tensor) {
  require_own(open.get(), tensor);
  return read_view(open.get(), tensor.view);
}

void require_shape(const Shape& wanted, const ReplicaFloats& values) {
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < values.ndim(); ++axis) {
    extents.push_back(static_cast<std::int64_t>(values.shape(axis)));
  }
  const Shape given{std::span<const std::int64_t>(extents)};
  if (given == wanted) return;
  throw ConfigError("values of shape " + given.to_string() + " for a tensor of shape " + wanted.to_string(),
                    "give one for each element, those of rows of padding too");
}

void write_tensor(const OpenReplica& open, const DeviceTensor& tensor, const ReplicaFloats& values) {
  const ReplicaContext& replica = open.get();
  require_own(replica, tensor);
  require_shape(tensor.view.shape, values);
  const std::span<const float> span(values.data(), values.size());
  const WithoutGil others_run;
  replica.write<float>(tensor.view, span);
}

const Batch& share_of(const OpenReplica& open) {
  const Batch* batch = open.get().batch;
  if (batch != nullptr) return *batch;
  throw ConfigError("this replica has no batch", "give run() the batches, too");
}

// Returns the field's real examples.
nb::object read_field(const OpenReplica& open, const std::string& name) {
  TensorView view = share_of(open).tensor(name);
  view.shape = view.shape.without_front().with_front(share_of(open).examples());
  return read_view(open.get(), view);
}

std::vector<std::string> field_names(const OpenReplica& open) {
  std::vector<std::string> names;
  for (const Field& field : share_of(open).fields()) names.push_back(field.name);
  return names;
}

// Calls function(replica) with the interpreter's lock. The strategy recovers from what it throws.
SharedObject call_for_replica(PythonStrategy& strategy, const SharedObject& function,
                              const ReplicaContext& replica) {
  const nb::gil_scoped_acquire lock;
  const auto open = std::make_shared<OpenReplica>(replica);
  struct Closing {
    OpenReplica& replica;
    ~Closing() { replica.close(); }
  } const closing{*open};
  try {
    return share(object_of(function)(open));
  } catch (...) {
    strategy.note_failure();
    throw;
  }
}

nb::list run(PythonStrategy& strategy, nb::object function, const PythonGlobalBatch* batches) {
  const SharedObject shared = share(std::move(function));
  const GlobalBatch* shares = batches == nullptr ? nullptr : &batches->get();
  std::vector<SharedObject> results;
  {
    const WithoutGil others_run;
    const auto call = [&](const ReplicaContext& replica) {
      results.push_back(call_for_replica(strategy, shared, replica));
    };
    if (shares == nullptr) {
      strategy.get().run(call);
    } else {
      strategy.get().run(*shares, call);
    }
  }
  nb::list list;
  for (const SharedObject& result : results) list.append(nb::borrow(object_of(result)));
  return list;
}

template <typename Where>
nb::object on(PythonStrategy& strategy, const Where& where, nb::object function) {
  const SharedObject shared = share(std::move(function));
  SharedObject result;
  {
    const WithoutGil others_run;
    result = strategy.get().on(
        where, [&](const ReplicaContext& replica) { return call_for_replica(strategy, shared, replica); });
  }
  return nb::borrow(object_of(result));
}

std::vector<double> reduce(PythonStrategy& strategy, const std::string& op,
                           const std::vector<std::vector<double>>& lists) {
  const auto how =
      choose<ReduceOp>("op", op, {{"sum", ReduceOp::kSum}, {"mean", ReduceOp::kMean}, {"max", ReduceOp::kMax}});
  const WithoutGil others_run;
  return strategy.get().reduce(how, lists);
}

void all_reduce(PythonStrategy& strategy, const std::vector<DeviceTensor>& tensors) {
  std::vector<TensorView> views;
  for (std::size_t r = 0; r < tensors.size(); ++r) {
    if (tensors[r].replica != static_cast<int>(r)) {
      throw ConfigError("the tensors to sum are not in the order of their replicas", "give one a replica, from 0");
    }
    views.push_back(tensors[r].view);
  }
  const WithoutGil others_run;
  strategy.get().all_reduce(views);
}

void bind_replica(nb::module_& module) {
  nb::class_<DeviceTensor>(module, "DeviceTensor",
                           "A tensor in a replica's device memory; replica.read() copies it.")
      .def_prop_ro("shape", [](const DeviceTensor& tensor) { return tuple_of(tensor.view.shape); })
      .def_prop_ro("dtype", [](const DeviceTensor& tensor) { return to_string(tensor.view.dtype); })
      .def_ro("replica", &DeviceTensor::replica)
      .def("__repr__", [](const DeviceTensor& tensor) {
        return fmt::format("DeviceTensor({} {}, replica {})", to_string(tensor.view.dtype),
                           tensor.view.shape.to_string(), tensor.replica);
      });
  nb::class_<OpenReplica>(module, "Replica", "One replica, as Strategy.run() gives it to its function.")
      .def_prop_ro(
          "index", [](const OpenReplica& open) { return open.get().index; }, "Within this process, from 0.")
      .def_prop_ro("local_replicas", [](const OpenReplica& open) { return open.get().local_replicas; })
      .def_prop_ro("world_replicas", [](const OpenReplica& open) { return open.get().world_replicas; })
      .def_prop_ro("first_replica", [](const OpenReplica& open) { return open.get().first_replica; })
      .def_prop_ro("device", [](const OpenReplica& open) { return open.get().device.info().name; })
      .def_prop_ro(
          "examples", [](const OpenReplica& open) { return share_of(open).examples(); },
          "The real ones of this replica's share.")
      .def_prop_ro("fields", &field_names, "The names of its share's fields.")
      .def("__getitem__", &read_field, "field"_a, "A copy of this field of its share as a NumPy array.")
      .def("read", &read_tensor, "tensor"_a, "Waits, and gives a copy of the tensor as a NumPy array.")
      .def("write", &write_tensor, "tensor"_a, "values"_a, "Sets the float32 tensor's elements; waits.")
      .def("__repr__", [](const OpenReplica& open) {
        if (open.is_closed()) return std::string("Replica(of a call that is over)");
        return fmt::format("Replica({} on {})", open.get().index, open.get().device.info().name);
      });
}

}  // namespace

void bind_strategy_calls(nb::class_<PythonStrategy>& strategy) {
  strategy.def("run", &run, "function"_a, "batches"_a.none())
      .def("on", &on<std::string>, "device"_a, "function"_a)
      .def("on", &on<int>, "replica"_a, "function"_a)
      .def("reduce", &reduce, "op"_a, "lists"_a)
      .def("all_reduce", &all_reduce, "tensors"_a)
      .def(
          "synchronize", [](PythonStrategy& self) { self.get().synchronize(); }, nb::call_guard<WithoutGil>())
      .def_prop_ro("devices", [](PythonStrategy& self) { return self.get().devices().to_string(); });
}

void bind_replicas(nb::module_& module) {
  bind_replica(module);
  module.def(
      "compute_average_loss",
      [](const ReplicaFloats& losses, std::int64_t global_examples) {
        if (losses.ndim() == 0) compute_average_loss(static_cast<double>(*losses.data()), global_examples);
        return compute_average_loss(std::span<const float>(losses.data(), losses.size()), global_examples);
      },
      "losses"_a, "global_examples"_a);
}

}  // namespace headrace::python
