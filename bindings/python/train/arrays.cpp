#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/train/arrays.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

using Held = std::shared_ptr<std::atomic<int>>;

}  // namespace

TensorView first_rows_of(const TensorView& view, std::int64_t rows) {
  return {view.data, view.shape.without_front().with_front(rows), view.dtype};
}

nb::capsule LentArrays::owner() const {
  ++*held_;
  return {new Held(held_), [](void* owned) noexcept {
            auto* const held = static_cast<Held*>(owned);
            --**held;
            delete held;
          }};
}

nb::object LentArrays::array(const TensorView& view, bool writable) {
  std::array<std::size_t, Shape::kMaxRank> extents{};
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    extents[static_cast<std::size_t>(axis)] = static_cast<std::size_t>(view.shape[axis]);
  }
  const auto rank = static_cast<std::size_t>(view.shape.rank());
  const nb::dlpack::dtype type = numpy_type(view.dtype);
  if (writable) return nb::cast(nb::ndarray<nb::numpy>(view.data, rank, extents.data(), owner(), nullptr, type));
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(view.data, rank, extents.data(), owner(), nullptr, type));
}

nb::object LentArrays::array(std::span<double> values) {
  const std::size_t count = values.size();
  return nb::cast(nb::ndarray<nb::numpy, double>(values.data(), 1, &count, owner()));
}

bool LentArrays::are_held() const {
  if (*held_ == 0) return false;
  nb::module_::import_("gc").attr("collect")();
  return *held_ != 0;
}

}  // namespace headrace::python
