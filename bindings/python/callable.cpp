#include "headrace/bindings/python/callable.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/bindings/python/module.h"
#include "headrace/pipeline/operations.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

std::atomic<bool> refused{false};
std::atomic<int> visits{0};  // threads that C++ let into Python, or that wait for the GIL on their way there
std::atomic<std::thread::id> ended_by{};
constexpr std::chrono::milliseconds kMaxFarewell{2000}, kStep{1};

// What C++ holds of Python's objects; null once it let go of them.
std::mutex objects_mutex;
std::list<PyObject*> objects;

// With the GIL, as long as there is one: afterwards the object is left to the end of the process.
template <typename Body>
void with_python(const Body& body) noexcept {
  ++visits;
  if (!is_refused() || ended_by.load() == std::this_thread::get_id()) {
    if (nb::is_alive()) {
      const Gil here;
      stay_in_python(body);
    }
  }
  --visits;
}

// The second hold on the thread state of the thread that makes and destroys it.
struct KeptThreadState {
  KeptThreadState() { PyGILState_Ensure(); }
  ~KeptThreadState() {
    with_python([] { PyGILState_Release(PyGILState_LOCKED); });
  }
};

PyObject* take_out(std::list<PyObject*>::iterator place) {
  const std::lock_guard lock(objects_mutex);
  PyObject* const object = *place;
  objects.erase(place);
  return object;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(*nb::inst_ptr<PlanFunction>(self)->shared());
  return 0;
}

}  // namespace

Gil::Gil() : state_(stay_in_python([] { return PyGILState_Ensure(); })) {
  std::shared_ptr<void>* const kept = kept_by_user_code();
  if (kept != nullptr && *kept == nullptr) *kept = std::make_shared<KeptThreadState>();
}

void stay_for_good() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void let_go_of_objects() {
  std::vector<PyObject*> had;
  {
    const std::lock_guard lock(objects_mutex);
    for (PyObject*& object : objects) had.push_back(std::exchange(object, nullptr));
  }
  for (PyObject* object : had) Py_XDECREF(object);
}

// Without tp_clear: whatever cycle it is in, the function's own dicts and cells can be cleared.
void bind_plan_function(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {0, nullptr}};
  nb::class_<PlanFunction>(module, "PlanFunction", nb::type_slots(slots)).def(nb::init<nb::object>());
  module.def("let_go_of_objects", &let_go_of_objects);
}

bool end_of_python() noexcept {
  ended_by.store(std::this_thread::get_id());
  refused.store(true);
  const auto last = std::chrono::steady_clock::now() + kMaxFarewell;
  while (visits.load() > 0 && std::chrono::steady_clock::now() < last) std::this_thread::sleep_for(kStep);
  return visits.load() > 0;
}

// Counted before it looks: end_of_python() waits for who is between the look and the GIL.
WithoutGil::~WithoutGil() {
  ++visits;
  if (is_refused() && ended_by.load() != std::this_thread::get_id()) {
    --visits;
    stay_for_good();
  }
  PyEval_RestoreThread(state_);
  --visits;
}

Visit::Visit() {
  ++visits;
  if (!is_refused()) return;
  --visits;
  throw Error(ErrorCode::kCancelled, "the interpreter has ended");
}
Visit::~Visit() { --visits; }

bool is_refused() noexcept { return refused.load(); }

nb::dlpack::dtype numpy_type(DType dtype) {
  switch (dtype) {
    case DType::kU8: return nb::dtype<std::uint8_t>();
    case DType::kI32: return nb::dtype<std::int32_t>();
    case DType::kI64: return nb::dtype<std::int64_t>();
    case DType::kF16: return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case DType::kF32: return nb::dtype<float>();
    case DType::kBF16: break;
  }
  throw ConfigError("NumPy has no bfloat16", "cast() to float32 before a Python function");
}

SharedObject share(nb::object object) {
  std::list<PyObject*>::iterator place;
  {
    const std::lock_guard lock(objects_mutex);
    place = objects.insert(objects.end(), object.release().ptr());
  }
  return {&*place, [place](PyObject* const*) { with_python([place] { Py_XDECREF(take_out(place)); }); }};
}

nb::handle object_of(const SharedObject& shared) {
  if (*shared == nullptr) throw Error(ErrorCode::kCancelled, "the interpreter has ended");
  return *shared;
}

nb::object array_of(std::span<const std::byte> bytes, const Field& field, const Shape& shape) {
  if (field.encoding == Encoding::kImage) return nb::bytes(bytes.data(), bytes.size());
  auto copy = std::make_unique<std::byte[]>(bytes.size() + 1);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  std::array<std::size_t, Shape::kMaxRank> extents{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents[static_cast<std::size_t>(axis)] = static_cast<std::size_t>(shape[axis]);
  }
  std::byte* const data = copy.get();
  const nb::capsule owner(copy.release(), [](void* owned) noexcept { delete[] static_cast<std::byte*>(owned); });
  return nb::cast(nb::ndarray<nb::numpy>(data, static_cast<std::size_t>(shape.rank()), extents.data(), owner,
                                         nullptr, numpy_type(field.dtype)));
}

BufferView::BufferView(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
}

SharedBuffer share_buffer(nb::handle object) {
  auto* const view = new BufferView(object);
  std::shared_ptr<const void> owner(view, [](BufferView* owned) { with_python([owned] { delete owned; }); });
  return {.bytes = view->bytes(), .owner = std::move(owner)};
}

void check_signals() {
  const Visit visit;
  const nanobind::gil_scoped_acquire here;
  if (here.is_valid() && PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace headrace::python
