// A GPU's warp for work that is written over one (narrow_convolution_work.h): products of matrices on tensor
// cores, loads from shared memory in their layout. Each lane keeps its part of a matrix in registers; the
// functions given are called with the lane's own number. Private to the CUDA backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cuda/element.h"

namespace headrace::cuda {

// Adds a product (16, 16) x (16, 8) to the lane's part of the sums. REQUIRES: every lane calls it.
HEADRACE_HOST_DEVICE void multiply_tiles(float (&sums)[4], const std::uint32_t (&left)[4], std::uint32_t right,
                                         std::uint32_t right_below) {
#ifdef __CUDA_ARCH__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right), "r"(right_below));
#endif
}

// Offsets are bytes from `base`, an address in shared memory.
class TensorWarp {
 public:
  template <int kCount>
  struct Words {
    std::uint32_t values[kCount];
  };
  template <typename T>
  struct OfLanes {
    T value;
    HEADRACE_HOST_DEVICE const T& of(int /*lane*/) const { return value; }
  };
  struct Sums {
    float values[4] = {};
    HEADRACE_HOST_DEVICE const float (&of(int /*lane*/) const)[4] { return values; }
  };

  HEADRACE_HOST_DEVICE TensorWarp(int lane, std::uint32_t base) : lane_(lane), base_(base) {}

  template <typename Function>
  HEADRACE_HOST_DEVICE auto of_lanes(const Function& function) const -> OfLanes<decltype(function(0))> {
    return {function(lane_)};
  }
  template <typename Function>
  HEADRACE_HOST_DEVICE void each_lane(const Function& function) const {
    function(lane_);
  }

  // Reads word `kWord` of each lane, two values, from global memory.
  template <int kWord, int kCount, typename Function>
  HEADRACE_HOST_DEVICE void fetch(Words<kCount>& words, const Function& address) const {
    words.values[kWord] = *reinterpret_cast<const std::uint32_t*>(address(lane_));
  }

  // Load 4 or 2 matrices of 8 x 8 values (ldmatrix); lane 8 m + r gives the offset of row r of matrix m.
  template <typename Function>
  HEADRACE_HOST_DEVICE void load(Words<4>& words, const Function& offset) const {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words.values[0]), "=r"(words.values[1]), "=r"(words.values[2]), "=r"(words.values[3])
                 : "r"(base_ + offset(lane_)));
#endif
  }
  template <typename Function>
  HEADRACE_HOST_DEVICE void load(Words<2>& words, const Function& offset) const {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(words.values[0]), "=r"(words.values[1])
                 : "r"(base_ + offset(lane_)));
#endif
  }
  template <typename Function>
  HEADRACE_HOST_DEVICE void load_transposed(Words<4>& words, const Function& offset) const {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words.values[0]), "=r"(words.values[1]), "=r"(words.values[2]), "=r"(words.values[3])
                 : "r"(base_ + offset(lane_)));
#endif
  }
  template <typename Function>
  HEADRACE_HOST_DEVICE void load_transposed(Words<2>& words, const Function& offset) const {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(words.values[0]), "=r"(words.values[1])
                 : "r"(base_ + offset(lane_)));
#endif
  }

  // Adds a product (16, 16) x (16, 8), b being words kFirst and kFirst + 1; or (16, 8) x (8, 8).
  template <int kFirst, int kCount>
  HEADRACE_HOST_DEVICE void multiply_add(Sums& sums, const Words<4>& a, const Words<kCount>& b) const {
    multiply_tiles(sums.values, a.values, b.values[kFirst], b.values[kFirst + 1]);
  }
  HEADRACE_HOST_DEVICE void multiply_add(Sums& sums, const Words<2>& a, const Words<1>& b) const {
#ifdef __CUDA_ARCH__
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(sums.values[0]), "+f"(sums.values[1]), "+f"(sums.values[2]), "+f"(sums.values[3])
        : "r"(a.values[0]), "r"(a.values[1]), "r"(b.values[0]));
#endif
  }

 private:
  int lane_;
  std::uint32_t base_;
};

#ifdef __CUDACC__
// Copies 16 bytes from global to shared memory, beside other work, until await_copies(); zeros if `from` is null.
__device__ inline void copy_chunk(std::byte* to, const void* from) {
  if (from == nullptr) {
    *reinterpret_cast<uint4*>(to) = uint4{0, 0, 0, 0};
  } else {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
  }
}
// Waits for the thread's copies; __syncthreads() makes those of all visible.
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif

}  // namespace headrace::cuda
