// A descriptor of the operating system, closed by its owner.
#pragma once

#include <utility>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) noexcept : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }

  int get() const noexcept { return value_; }
  bool is_open() const noexcept { return value_ >= 0; }
  void close() noexcept;

 private:
  int value_ = -1;
};

}  // namespace headrace
