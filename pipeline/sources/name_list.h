// The names or paths of a collection, back to back: there may be millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string_view>

#include "headrace/pipeline/sources/table_column.h"

namespace headrace {

class NameList {
 public:
  NameList() = default;
  NameList(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) add(name);
  }

  void reserve(std::size_t names, std::size_t bytes) {
    ends_.reserve(names);
    bytes_.reserve(bytes);
  }
  // Adds one name: `folder` and then `name`.
  void add(std::string_view folder, std::string_view name) {
    bytes_.append(folder);
    add(name);
  }
  void add(std::string_view name) {
    bytes_.append(name);
    ends_.push_back(bytes_.size());
  }

  std::size_t size() const noexcept { return ends_.size(); }
  // Valid until another name is added.
  std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  // Returns the names as a range.
  auto all() const {
    return std::views::iota(std::size_t{0}, size()) |
           std::views::transform([this](std::size_t i) { return (*this)[i]; });
  }

  std::string_view bytes() const noexcept { return {bytes_.data(), bytes_.size()}; }
  std::span<const std::uint64_t> ends() const noexcept { return ends_; }
  // As TableColumn::share(): no name is added any more.
  void share() {
    bytes_.share();
    ends_.share();
  }

 private:
  TableColumn<char> bytes_;
  TableColumn<std::uint64_t> ends_;
};

}  // namespace headrace
