#include "headrace/cache/disk/sample_compressor.h"

#include <zstd.h>

#include <memory>

namespace headrace {
namespace {

constexpr std::uint64_t kTrial = 32;  // samples
constexpr double kWorthWhile = 0.85;  // of the size, at most
constexpr int kLevel = 1;

struct Free {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// Returns the compressed size; 0 if the sample cannot be compressed.
std::size_t compress(std::span<const std::byte> sample, std::vector<std::byte>& into) {
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (context == nullptr) return 0;
  into.resize(ZSTD_compressBound(sample.size()));
  const std::size_t size =
      ZSTD_compressCCtx(context.get(), into.data(), into.size(), sample.data(), sample.size(), kLevel);
  return ZSTD_isError(size) != 0U ? 0 : size;
}

}  // namespace

SampleCompressor::Stored SampleCompressor::store(std::span<const std::byte> sample, std::vector<std::byte>& into) {
  const Stored plain{.codec = SampleCodec::kNone, .bytes = sample};
  if (tried_.load(std::memory_order_relaxed) < kTrial) {
    const std::size_t size = compress(sample, into);
    plain_bytes_.fetch_add(sample.size(), std::memory_order_relaxed);
    compressed_bytes_.fetch_add(size == 0 ? sample.size() : size, std::memory_order_relaxed);
    tried_.fetch_add(1, std::memory_order_relaxed);
    return plain;
  }
  const auto smaller = static_cast<double>(compressed_bytes_.load(std::memory_order_relaxed));
  if (smaller > kWorthWhile * static_cast<double>(plain_bytes_.load(std::memory_order_relaxed))) return plain;
  const std::size_t size = compress(sample, into);
  if (size == 0 || size >= sample.size()) return plain;
  return {.codec = SampleCodec::kZstd, .bytes = std::span(into).first(size)};
}

bool SampleCompressor::expand(std::span<const std::byte> stored, std::span<std::byte> sample) noexcept {
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) return false;
  return ZSTD_decompressDCtx(context.get(), sample.data(), sample.size(), stored.data(), stored.size()) ==
         sample.size();
}

}  // namespace headrace
