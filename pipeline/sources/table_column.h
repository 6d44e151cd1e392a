// Elements of the tables that sources hold: there may be millions, in processes that open the same data.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/base/mapped_file.h"

namespace headrace {

// Returns a file's pages that hold these bytes, which all processes share that hold the same ones; null: they are
// few, or there is no such file and none can be written. The file lies beside the kept indexes (kept_index.h), is
// named after its content, and goes when none has asked for it in a month.
std::shared_ptr<const FilePart> shared_copy(std::span<const std::byte> bytes) noexcept;

// A vector, until share() replaces its memory by pages that processes share. T has no padding.
template <typename T>
class TableColumn {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);

 public:
  TableColumn() = default;
  TableColumn(std::vector<T> elements) : own_(std::move(elements)) {}

  // REQUIRES, as the next two: not shared.
  void reserve(std::size_t count) { own_.reserve(count); }
  void push_back(const T& element) { own_.push_back(element); }
  void append(std::span<const T> elements) { own_.insert(own_.end(), elements.begin(), elements.end()); }

  const T* data() const noexcept {
    return shared_ == nullptr ? own_.data() : reinterpret_cast<const T*>(shared_->bytes().data());
  }
  std::size_t size() const noexcept {
    return shared_ == nullptr ? own_.size() : shared_->bytes().size() / sizeof(T);
  }
  bool empty() const noexcept { return size() == 0; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size(); }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  const T& front() const noexcept { return *data(); }
  const T& back() const noexcept { return data()[size() - 1]; }

  void share() {
    shared_ = shared_copy(std::as_bytes(std::span(own_)));
    if (shared_ != nullptr) std::vector<T>().swap(own_);
  }

 private:
  std::vector<T> own_;
  std::shared_ptr<const FilePart> shared_;  // instead of it; null: not shared
};

}  // namespace headrace
