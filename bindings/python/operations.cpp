// Operations: those of the engine, and Python functions as such.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/pipeline/operations.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// Calls function(arrays, key): the inputs in order, and two numbers that seed a generator of the record's own, or
// None; it returns a buffer for each output.
class PythonOperation {
 public:
  PythonOperation(const PlanFunction& function, Fields inputs, bool random)
      : function_(function), inputs_(std::move(inputs)), random_(random) {}

  void operator()(UserSample& sample) const {
    function_.call([&](nb::handle function) {
      nb::list arrays;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        arrays.append(array_of(sample.bytes(i), inputs_[i], sample.shape(i)));
      }
      const nb::object outputs = call_function(function, arrays, key(sample));
      std::size_t output = 0;
      for (nb::handle made : outputs) sample.put(output++, BufferView(made).bytes());
    });
  }

 private:
  nb::object key(UserSample& sample) const {
    if (!random_) return nb::none();
    const auto draw = [&] {
      const std::uint64_t high = sample.random().next_u32();
      return high << 32 | sample.random().next_u32();
    };
    const std::uint64_t first = draw(), second = draw();
    return nb::make_tuple(first, second);
  }

  PythonCallable function_;
  Fields inputs_;
  bool random_;
};

Operations python_operation(const std::string& name, std::uint32_t version, const std::vector<FieldTuple>& inputs,
                            const std::vector<FieldTuple>& outputs, bool random, const PlanFunction& function) {
  UserOperation operation{.name = name, .version = version, .inputs = {}, .outputs = to_fields(outputs)};
  Fields fields = to_fields(inputs);
  for (const Field& input : fields) operation.inputs.push_back(input.name);
  operation.each_pass_anew = random;
  operation.function = PythonOperation(function, std::move(fields), random);
  return user_operation(std::move(operation));
}

// Makes the operation a function of its options. The first ones may be given by position: those that are required,
// or if none is, all.
void bind_operation(nb::module_& module, const OperationKind& kind) {
  OptionLister lister;
  operation(kind.name, lister);
  const std::vector<ListedOption>& options = lister.list();
  const int placed = kind.required > 0 ? kind.required : static_cast<int>(options.size());
  const Positional positional{.names = first_names(options, placed), .required = kind.required > 0};
  const std::string signature =
      fmt::format("def {}({}) -> headrace._native.Operations", kind.name, parameters_text(options, positional));
  const auto make = [name = kind.name, positional, signature](const nb::args& given, const nb::kwargs& named) {
    OptionReader reader(given_options(given, named, positional, signature));
    Operations made = operation(name, reader);
    reader.refuse_unknown(name + "()");
    return made;
  };
  module.def(kind.name.c_str(), make, "given"_a, "named"_a, nb::sig(signature.c_str()),
             parameters_doc(kind.doc, options).c_str());
}

Operations moved_along(const Operations& operations, std::vector<std::string> masks,
                       std::vector<std::string> boxes, const std::string& lost_boxes,
                       std::vector<std::string> with_boxes) {
  const auto lost = choose<LostBoxes>("lost_boxes", lost_boxes);
  return operations.along(
      {.masks = std::move(masks), .boxes = std::move(boxes), .lost = lost, .with_boxes = std::move(with_boxes)});
}

std::string describe_all(const Operations& operations) {
  std::string text;
  for (const Operation& operation : operations.list()) text += (text.empty() ? "" : " | ") + describe(operation);
  return text;
}

}  // namespace

void bind_operations(nb::module_& module) {
  nb::class_<Operations>(module, "Operations", "What is done to a sample, or a chain of it; joined with |.")
      .def(
          "__or__", [](const Operations& left, const Operations& right) { return left | right; },
          nb::is_operator())
      .def("along", &moved_along, nb::kw_only(), "masks"_a = std::vector<std::string>(),
           "boxes"_a = std::vector<std::string>(), "lost_boxes"_a = "zero",
           "with_boxes"_a = std::vector<std::string>(),
           "The chain, whose crops, flips, rotations and resizes move these fields with the image: masks, (H, W, "
           "C) "
           "as high and wide as the image, resized to the nearest number; boxes, (N, 4) or (4,) in pixels, left, "
           "top, right, bottom, clipped, float32 afterwards, around what a rotation makes of them. A box of which "
           "nothing is left becomes zeros, or with lost_boxes=\"drop\" leaves its place to the next, and so do "
           "the rows of "
           "the fields with_boxes, such as labels; [\"boxes\"]: no other field has a row for each box.")
      .def("__len__", [](const Operations& operations) { return operations.list().size(); })
      .def("__repr__", &describe_all);
  nb::module_ operations = module.def_submodule("operations", "The engine's operations.");
  for (const OperationKind& kind : operation_kinds()) bind_operation(operations, kind);
  module.def("python_operation", &python_operation, "name"_a, "version"_a, "inputs"_a, "outputs"_a, "random"_a,
             "function"_a);
}

}  // namespace headrace::python
