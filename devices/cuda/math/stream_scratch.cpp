#include "headrace/devices/cuda/math/stream_scratch.h"

#include <algorithm>

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace::cuda {
namespace {

constexpr std::size_t kFirstBytes = std::size_t{1} << 20;

}  // namespace

StreamScratch::~StreamScratch() {
  for (void* data : all_) cudaFree(data);
}

void* StreamScratch::reserve(cudaStream_t stream, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Piece& piece = current_[stream];
  if (piece.bytes < bytes) piece = allocate(std::max({bytes, 2 * piece.bytes, kFirstBytes}));
  return piece.data;
}

StreamScratch::Piece StreamScratch::allocate(std::size_t bytes) {
  all_.reserve(all_.size() + 1);  // so that nothing leaks below
  Piece piece{.data = nullptr, .bytes = bytes};
  CUDA_CHECK(cudaMalloc(&piece.data, bytes), device_);
  all_.push_back(piece.data);
  return piece;
}

}  // namespace headrace::cuda
