// A batch as a mapping of its fields.
#include "headrace/bindings/python/batch.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/text.h"
#include "headrace/devices/device.h"
#include "headrace/pipeline/record.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

std::optional<std::size_t> find_place(const PythonBatch& batch, const std::string& name) {
  const Fields& fields = batch.batch->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
  }
  return std::nullopt;
}

PythonTensor tensor_at(const PythonBatch& batch, std::size_t field, bool padding = false) {
  return {.batch = batch.batch, .field = field, .padding = padding};
}

PythonTensor item(const PythonBatch& batch, const std::string& name) {
  const std::optional<std::size_t> at = find_place(batch, name);
  if (at) return tensor_at(batch, *at);
  std::string known;
  for (const Field& field : batch.batch->fields()) known += (known.empty() ? "" : ", ") + field.name;
  throw nb::key_error(("there is no field '" + name + "' (fields: " + known + ")").c_str());
}

nb::list keys(const PythonBatch& batch) {
  nb::list names;
  for (const Field& field : batch.batch->fields()) names.append(field.name);
  return names;
}

nb::list values(const PythonBatch& batch) {
  nb::list tensors;
  for (std::size_t i = 0; i < batch.batch->fields().size(); ++i) tensors.append(tensor_at(batch, i));
  return tensors;
}

nb::list items(const PythonBatch& batch) {
  nb::list pairs;
  for (std::size_t i = 0; i < batch.batch->fields().size(); ++i) {
    pairs.append(nb::make_tuple(batch.batch->fields()[i].name, tensor_at(batch, i)));
  }
  return pairs;
}

nb::object records(const PythonBatch& batch) {
  const std::span<const std::uint64_t> numbers = batch.batch->records();
  // NumPy reads them as what they are: headrace/_batch.py views the bytes.
  return nb::bytes(numbers.data(), numbers.size_bytes());
}

nb::object known(std::uint64_t number) {
  return number == DataLocation::kUnknown ? nb::none() : nb::object(nb::int_(number));
}

nb::list bad_records(const PythonBatch& batch) {
  nb::list list;
  for (const BadRecord& bad : batch.batch->bad_records()) {
    list.append(nb::make_tuple(bad.source, known(bad.record), bad.name, known(bad.offset), bad.operation,
                               bad.cause, bad.substitute ? nb::object(nb::int_(*bad.substitute)) : nb::none(),
                               bad.row));
  }
  return list;
}

nb::tuple ragged(const PythonBatch& batch) {
  nb::list names;
  for (const RaggedTensor& one : batch.batch->ragged()) names.append(batch.batch->fields()[one.values].name);
  return nb::tuple(names);
}

// "Batch(image: uint8 (64, 32, 32, 3), label: int64 (64,); 60 examples, epoch 0, step 3, replica 1 on cpu:1)"
std::string repr_of(const PythonBatch& batch) {
  const Batch& of = *batch.batch;
  std::string fields;
  for (std::size_t i = 0; i < of.fields().size(); ++i) {
    const TensorView& tensor = of.tensors()[i];
    fields += fmt::format("{}{}: {} {}", i == 0 ? "" : ", ", printable(of.fields()[i].name),
                          to_string(tensor.dtype), tensor.shape.to_string());
  }
  return fmt::format("Batch({}; {}, epoch {}, step {}, replica {} on {})", fields,
                     count_of(static_cast<std::uint64_t>(of.examples()), "example"), of.position().epoch,
                     of.position().step, batch.replica, of.device().info().name);
}

void bind_position(nb::class_<PythonBatch>& batch) {
  const auto position = [&](const char* name, auto member) {
    batch.def_prop_ro(name, [member](const PythonBatch& of) { return of.batch->position().*member; });
  };
  position("epoch", &BatchPosition::epoch);
  position("step", &BatchPosition::step);
  position("sequence", &BatchPosition::sequence);
  position("global_examples", &BatchPosition::global_examples);
  position("first_row", &BatchPosition::first_row);
  position("last_of_epoch", &BatchPosition::last_of_epoch);
  position("bucket", &BatchPosition::bucket);
}

}  // namespace

void bind_batch(nb::module_& module) {
  nb::class_<PythonBatch> batch(
      module, "Batch", nb::sig("class Batch(collections.abc.Mapping[str, Tensor])"), nb::is_weak_referenceable(),
      "One replica's share of a global batch: its fields by name, of the real examples alone.");
  batch.def("__getitem__", &item, "name"_a)
      .def("__contains__",
           [](const PythonBatch& of, nb::handle name) {
             return nb::isinstance<nb::str>(name) && find_place(of, nb::cast<std::string>(name)).has_value();
           })
      .def("__iter__", [](const PythonBatch& of) { return nb::iter(keys(of)); })
      .def("__len__", [](const PythonBatch& of) { return of.batch->fields().size(); })
      .def("keys", &keys)
      .def("values", &values)
      .def("items", &items)
      .def(
          "get",
          [](const PythonBatch& of, const std::string& name, nb::object otherwise) {
            const std::optional<std::size_t> at = find_place(of, name);
            return at ? nb::cast(tensor_at(of, *at)) : otherwise;
          },
          "name"_a, "default"_a = nb::none())
      .def(
          "padded",
          [](const PythonBatch& of, const std::string& name) {
            return tensor_at(of, find_field(of.batch->fields(), name), true);
          },
          "name"_a, "The field with the rows that fill the batch up: the same shape for every batch of a loader.")
      .def_prop_ro("examples", [](const PythonBatch& of) { return of.batch->examples(); })
      .def_prop_ro(
          "repeats", [](const PythonBatch& of) { return of.batch->repeats(); },
          "How many of the examples, the last ones, repeat others of the batch: of "
          "Loader(even_shares=\"repeat\").")
      .def_prop_ro("rows", [](const PythonBatch& of) { return of.batch->rows(); })
      .def_prop_ro(
          "ragged", &ragged, nb::sig("def ragged(self) -> tuple[str, ...]"),
          "The fields of varying length, after ragged_batch(): `<name>_offsets` says where each row begins.")
      .def_prop_ro("replica", [](const PythonBatch& of) { return of.replica; })
      .def("__arrow_c_array__", &to_arrow, "requested_schema"_a = nb::none(),
           "The real examples as an Arrow struct of the fields, in the batch's memory.")
      .def("_records", &records)
      .def("_bad_records", &bad_records)
      .def("__repr__", &repr_of);
  bind_position(batch);
}

}  // namespace headrace::python
