// A sum over ranks that share no memory, in the order of the pairwise tree: which rank sends what to which, and
// which adds it. Plain C++ for any transport. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/cuda/reduction_tree.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// Elements that a rank sends to `peer`, or receives from it. A rank is also its own peer.
struct Transfer {
  int peer;
  float* data;
  std::int64_t elements;  // at least 1
};

// One rank's part. All ranks send each rank one slice of a piece of the tensor; it adds them in its scratch memory
// and sends the sum to all: the traffic of a ring, and only a piece's memory. All ranks have equally large scratch
// memory, and so make the same calls.
class TreeSum {
 public:
  // `scratch`: f32, at least 16 elements per rank. A larger tensor is summed in several pieces.
  TreeSum(int rank, int ranks, const TensorView& scratch)
      : rank_(rank), ranks_(ranks), scratch_(scratch.as<float>()), slot_(slice_of_all(scratch.elements(), ranks)) {
    HEADRACE_CHECK(slot_ > 0, "scratch memory of less than a line a rank");
  }

  // Submits to `link`, in this order for every piece and in the same order on all ranks:
  //  - link.exchange(outgoing, incoming), spans of Transfer, a rank's in ascending order of peers; what is sent to
  //    a peer is what that one receives from here in its own call;
  //  - link.sum(parts, sum): like Kernels::sum_tree, sum being the first part; not by a rank without a slice;
  //  several
  //    times if there are more parts than that takes;
  //  - link.exchange(outgoing, incoming) once more.
  template <typename Link>
  void submit(const TensorView& tensor, const Link& link) const {
    if (ranks_ == 1) return;
    const std::int64_t piece = slot_ * ranks_, elements = tensor.elements();
    for (std::int64_t at = 0; at < elements; at += piece) {
      sum_piece(tensor.as<float>() + at, piece < elements - at ? piece : elements - at, link);
    }
  }

 private:
  // Whole lines, so that no slice of a piece is longer.
  static std::int64_t slice_of_all(std::int64_t elements, int ranks) noexcept {
    constexpr std::int64_t kLine = 16;
    return elements / ranks / kLine * kLine;
  }

  template <typename Link>
  void sum_piece(float* piece, std::int64_t elements, const Link& link) const {
    const Slice mine = slice_of(elements, rank_, ranks_);
    const std::int64_t count = mine.end - mine.begin;
    std::vector<Transfer> slices, parts, sums;
    std::vector<TensorView> summed;
    for (int peer = 0; peer < ranks_; ++peer) {
      const Slice theirs = slice_of(elements, peer, ranks_);
      float* part = scratch_ + peer * count;
      add(slices, {.peer = peer, .data = piece + theirs.begin, .elements = theirs.end - theirs.begin});
      add(parts, {.peer = peer, .data = part, .elements = count});
      add(sums, {.peer = peer, .data = scratch_, .elements = count});
      summed.push_back({part, Shape{count}, DType::kF32});
    }
    link.exchange(slices, parts);
    if (count > 0) sum_in_blocks(std::move(summed), link);
    link.exchange(sums, slices);
  }

  // A block of 64 parts is a subtree, whose sum is a part of the rest of the tree.
  template <typename Link>
  static void sum_in_blocks(std::vector<TensorView> parts, const Link& link) {
    constexpr std::size_t kBlock = kernel::kMaxSummed;
    static_assert(kBlock == 64);
    while (parts.size() > 1) {
      std::vector<TensorView> sums;
      for (std::size_t at = 0; at < parts.size(); at += kBlock) {
        const auto block = std::span(parts).subspan(at, std::min(kBlock, parts.size() - at));
        if (block.size() > 1) link.sum(block, block.front());
        sums.push_back(block.front());
      }
      parts = std::move(sums);
    }
  }

  static void add(std::vector<Transfer>& transfers, const Transfer& transfer) {
    if (transfer.elements > 0) transfers.push_back(transfer);
  }

  int rank_, ranks_;
  float* scratch_;
  std::int64_t slot_;  // elements of scratch memory for a rank's slice
};

}  // namespace headrace::cuda
