#include "headrace/bindings/python/callable.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace nb = nanobind;

namespace headrace::python {
namespace {

std::atomic<bool> refused{false};
std::atomic<int> visits{0};  // threads that C++ let into Python, or that wait for the GIL on their way there
std::atomic<std::thread::id> ended_by{};
constexpr std::chrono::milliseconds kMaxFarewell{2000}, kStep{1};

[[noreturn]] void stay_for_good() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// With the GIL, as long as there is one: afterwards the object is left to the end of the process.
template <typename Body>
void with_python(const Body& body) noexcept {
  ++visits;
  if (!is_refused()) {
    const nb::detail::cleanup_guard here;
    if (here) body();
  }
  --visits;
}

}  // namespace

void end_of_python() noexcept {
  ended_by.store(std::this_thread::get_id());
  refused.store(true);
  const auto last = std::chrono::steady_clock::now() + kMaxFarewell;
  while (visits.load() > 0 && std::chrono::steady_clock::now() < last) std::this_thread::sleep_for(kStep);
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
  return {object.release().ptr(), [](PyObject* owned) { with_python([owned] { Py_DECREF(owned); }); }};
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

}  // namespace headrace::python
