// One field of a batch for other libraries: DLPack and Python's buffer protocol.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/bindings/python/batch.h"
#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dlpack.h"
#include "headrace/pipeline/dlpack_structs.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

const Device& device_of(const PythonTensor& tensor) { return tensor.batch->device(); }

std::pair<int, int> dlpack_device(const PythonTensor& tensor) {
  const DeviceInfo& info = device_of(tensor).info();
  if (info.kind == DeviceKind::kCpu) return {kDLCPU, 0};
  return {info.host_memory ? kDLCUDAHost : kDLCUDA, info.ordinal};
}

nb::tuple shape_of(const PythonTensor& tensor) {
  const auto extents = tensor.view().shape.extents();
  nb::list shape;
  shape.append(tensor.rows());
  for (const std::int64_t extent : extents.subspan(1)) shape.append(extent);
  return nb::tuple(shape);
}

std::size_t bytes_of(const PythonTensor& tensor) {
  const TensorView& view = tensor.view();
  return view.shape[0] == 0
             ? 0
             : view.bytes() / static_cast<std::size_t>(view.shape[0]) * static_cast<std::size_t>(tensor.rows());
}

// --- DLPack

// Deletes a tensor that nobody took, with its capsule.
template <typename Managed>
void delete_untaken(PyObject* capsule) {
  constexpr const char* kName = std::is_same_v<Managed, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

template <typename Managed>
nb::object capsule_of(Managed* managed, const char* name) {
  PyObject* const capsule = PyCapsule_New(managed, name, delete_untaken<Managed>);
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

// As the array API says: the consumer's stream is a number, 1 CUDA's default one, also where none is given; -1: do
// not wait. The host has no streams.
void name_stream(DlpackOptions& options, const PythonTensor& tensor, const std::optional<std::int64_t>& stream) {
  constexpr std::int64_t kLegacyDefault = 1;
  if (device_of(tensor).info().host_memory) return;
  if (stream && *stream == -1) {
    options.synchronize = false;
  } else {
    options.stream = static_cast<std::uintptr_t>(stream.value_or(kLegacyDefault));
  }
}

void check_device(const PythonTensor& tensor, const std::optional<std::pair<int, int>>& wanted) {
  if (!wanted || *wanted == dlpack_device(tensor)) return;
  throw nb::buffer_error("a batch is given where it is: take it from its own device and copy it there");
}

nb::object dlpack(const PythonTensor& tensor, const std::optional<std::int64_t>& stream,
                  const std::optional<std::pair<int, int>>& max_version,
                  const std::optional<std::pair<int, int>>& device, std::optional<bool> copy) {
  check_device(tensor, device);
  DlpackOptions options{.padding = tensor.padding};
  name_stream(options, tensor, stream);
  const std::string& field = tensor.batch->fields()[tensor.field].name;
  const bool versioned = max_version && max_version->first >= 1;
  DLManagedTensorVersioned* current = nullptr;
  DLManagedTensor* legacy = nullptr;
  {
    const WithoutGil others_run;
    SharedBatch batch = tensor.batch.shared();
    // The copy's device is kept by the batch that it came from.
    if (copy.value_or(false)) batch = copy_of(batch, std::make_shared<HeldBatch>(tensor.batch));
    if (versioned) {
      current = to_dlpack(batch, field, options);
    } else {
      legacy = to_legacy_dlpack(batch, field, options);
    }
  }
  if (!versioned) return capsule_of(legacy, "dltensor");
  if (copy.value_or(false)) current->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  return capsule_of(current, "dltensor_versioned");
}

// --- the buffer protocol

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::kU8: return "B";
    case DType::kI32: return "i";
    case DType::kI64: return "l";
    case DType::kF16: return "e";
    case DType::kF32: return "f";
    case DType::kBF16: break;
  }
  return nullptr;
}

// Kept while somebody has the buffer; the tensor itself is kept by the view.
struct Extents {
  std::array<Py_ssize_t, Shape::kMaxRank> shape{}, strides{};
};

const char* why_no_buffer(const PythonTensor& tensor, int flags) {
  if (!device_of(tensor).info().host_memory) {
    return "the batch is in a GPU's memory: take it with torch(), jax(), cupy() or __dlpack__()";
  }
  if (format_of(tensor.view().dtype) == nullptr) return "NumPy has no bfloat16: take it with torch() or jax()";
  if ((flags & PyBUF_WRITABLE) != 0 && !tensor.batch->writable()) {
    return "the batch is handed out again: it is not to be written to";
  }
  return nullptr;
}

void fill(Py_buffer& buffer, const PythonTensor& tensor, int flags) {
  const TensorView& view = tensor.view();
  auto extents = std::make_unique<Extents>();
  buffer.buf = view.data;
  buffer.itemsize = static_cast<Py_ssize_t>(size_of(view.dtype));
  buffer.len = static_cast<Py_ssize_t>(bytes_of(tensor));
  buffer.readonly = tensor.batch->writable() ? 0 : 1;
  buffer.ndim = view.shape.rank();
  Py_ssize_t stride = buffer.itemsize;
  for (int axis = buffer.ndim - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    extents->shape[at] = axis == 0 ? tensor.rows() : view.shape[axis];
    extents->strides[at] = stride;
    stride *= extents->shape[at];
  }
  buffer.format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(view.dtype)) : nullptr;
  buffer.shape = (flags & PyBUF_ND) != 0 ? extents->shape.data() : nullptr;
  buffer.strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? extents->strides.data() : nullptr;
  buffer.suboffsets = nullptr;
  buffer.internal = extents.release();
}

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  const auto& tensor = *nb::inst_ptr<PythonTensor>(self);
  buffer->obj = nullptr;
  if (const char* why = why_no_buffer(tensor, flags); why != nullptr) {
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
  }
  fill(*buffer, tensor, flags);
  Py_INCREF(self);
  buffer->obj = self;
  return 0;
}

void release_buffer(PyObject* /*self*/, Py_buffer* buffer) { delete static_cast<Extents*>(buffer->internal); }

PyType_Slot tensor_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {0, nullptr}};

}  // namespace

void bind_tensor(nb::module_& module) {
  nb::class_<PythonTensor>(
      module, "Tensor", nb::type_slots(tensor_slots), nb::is_weak_referenceable(),
      "One field of a batch, in the memory of its device. Frameworks take it without a copy, and "
      "what they make of it keeps the memory alive.")
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", [](const PythonTensor& tensor) { return to_string(tensor.view().dtype); })
      .def_prop_ro("ndim", [](const PythonTensor& tensor) { return tensor.view().shape.rank(); })
      .def_prop_ro("nbytes", &bytes_of)
      .def_prop_ro("device", [](const PythonTensor& tensor) { return device_of(tensor).info().name; })
      .def_prop_ro("data_ptr",
                   [](const PythonTensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.view().data); })
      .def("__len__", &PythonTensor::rows)
      .def("__dlpack_device__", &dlpack_device)
      .def("__dlpack__", &dlpack, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
           "dl_device"_a = nb::none(), "copy"_a = nb::none());
}

}  // namespace headrace::python
