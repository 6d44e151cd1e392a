// Operations: those of the engine, and Python functions as such.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/names.h"
#include "headrace/pipeline/operation.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// Calls function(arrays, key): the inputs in order, and two numbers that seed a generator of the record's own, or
// None; it returns a buffer for each output.
class PythonOperation {
 public:
  PythonOperation(nb::object function, Fields inputs, bool random)
      : function_(std::move(function)), inputs_(std::move(inputs)), random_(random) {}

  void operator()(UserSample& sample) const {
    function_.call([&](nb::handle function) {
      nb::list arrays;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        arrays.append(array_of(sample.bytes(i), inputs_[i], sample.shape(i)));
      }
      const nb::object outputs = function(arrays, key(sample));
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
                            const std::vector<FieldTuple>& outputs, bool random, nb::object function) {
  UserOperation operation{.name = name, .version = version, .inputs = {}, .outputs = to_fields(outputs)};
  Fields fields = to_fields(inputs);
  for (const Field& input : fields) operation.inputs.push_back(input.name);
  operation.each_pass_anew = random;
  operation.function = PythonOperation(std::move(function), std::move(fields), random);
  return user_operation(std::move(operation));
}

void bind_images(nb::module_& module) {
  module.def(
      "pad_crop",
      [](int size, int pad, const std::string& padding) {
        return pad_crop(size, pad,
                        choose<Padding>("padding", padding, {{"zero", Padding::kZero}, {"reflect", Padding::kReflect}}));
      },
      "size"_a, "pad"_a, "padding"_a);
  module.def("flip", [](float probability) { return flip(probability); }, "probability"_a);
  module.def("alternating_flip", &alternating_flip);
  module.def(
      "random_resized_crop",
      [](int size, float min_area, float max_area, float min_ratio, float max_ratio) {
        return random_resized_crop({.size = size,
                                    .min_area = min_area,
                                    .max_area = max_area,
                                    .min_ratio = min_ratio,
                                    .max_ratio = max_ratio});
      },
      "size"_a, "min_area"_a, "max_area"_a, "min_ratio"_a, "max_ratio"_a);
  module.def("resize", &resize, "size"_a);
  module.def("center_crop", &center_crop, "size"_a);
  module.def(
      "color_jitter",
      [](float brightness, float contrast, float saturation, float hue) {
        return color_jitter(
            {.brightness = brightness, .contrast = contrast, .saturation = saturation, .hue = hue});
      },
      "brightness"_a, "contrast"_a, "saturation"_a, "hue"_a);
  module.def("cutout", [](int size, std::vector<float> fill) { return cutout(size, std::move(fill)); }, "size"_a,
             "fill"_a);
}

void bind_numbers(nb::module_& module) {
  module.def(
      "normalize",
      [](std::vector<float> mean, std::vector<float> std) { return normalize(std::move(mean), std::move(std)); },
      "mean"_a, "std"_a);
  module.def("cast", [](const std::string& to) { return cast(dtype_of(to)); }, "to"_a);
  module.def(
      "to_layout",
      [](const std::string& layout) {
        return to_layout(choose<ImageLayout>(
            "layout", layout,
            {{"channels_first", ImageLayout::kChannelsFirst}, {"channels_last", ImageLayout::kChannelsLast}}));
      },
      "layout"_a);
  module.def("flatten", &flatten);
  module.def(
      "brightness_contrast",
      [](float brightness, float contrast) {
        return brightness_contrast({.brightness = brightness, .contrast = contrast});
      },
      "brightness"_a, "contrast"_a);
  module.def("one_hot", &one_hot, "classes"_a, "smoothing"_a);
  module.def("mixup", [](float alpha, float probability) { return mixup({.alpha = alpha, .probability = probability}); },
             "alpha"_a, "probability"_a);
  module.def("cutmix",
             [](float alpha, float probability) { return cutmix({.alpha = alpha, .probability = probability}); },
             "alpha"_a, "probability"_a);
}

std::string describe_all(const Operations& operations) {
  std::string text;
  for (const Operation& operation : operations.list()) text += (text.empty() ? "" : " | ") + describe(operation);
  return text;
}

}  // namespace

void bind_operations(nb::module_& module) {
  nb::class_<Operations>(module, "Operations", "What is done to a sample, or a chain of it; joined with |.")
      .def("__or__", [](const Operations& left, const Operations& right) { return left | right; }, nb::is_operator())
      .def("__len__", [](const Operations& operations) { return operations.list().size(); })
      .def("__repr__", &describe_all);
  bind_images(module);
  bind_numbers(module);
  module.def("python_operation", &python_operation, "name"_a, "version"_a, "inputs"_a, "outputs"_a, "random"_a,
             "function"_a);
}

}  // namespace headrace::python
