// The limit of memory alone for cifar-train: an image is 3 kB read from anywhere in a data set and 12 kB written,
// past the caches, to a ring of batches larger than them. Nothing is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/devices/base/memory.h"

namespace headrace::tools {

// The data set, read in one random order. Thread-safe.
class CifarTraffic {
 public:
  CifarTraffic();  // throws std::bad_alloc if there is no memory for it

  std::size_t images() const { return order_.size(); }

  // One thread's share of the traffic, from the position `first` on, to its own ring.
  class Lane {
   public:
    Lane(const CifarTraffic& traffic, std::size_t first);
    void move_image();

   private:
    const CifarTraffic& traffic_;
    std::size_t at_;
    LargeMemory ring_;
  };

 private:
  const std::byte* image(std::size_t position) const;

  LargeMemory images_;
  std::vector<std::uint32_t> order_;
};

}  // namespace headrace::tools
