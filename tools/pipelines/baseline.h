// The baselines that the named pipelines are compared with: bare libjpeg, bare memory, one fused loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/source.h"
#include "headrace/tools/pipelines/pipelines.h"

struct jpeg_decompress_struct;

namespace headrace::tools {

// The shortest honest use of libjpeg-turbo: one handle, whole images to RGB.

// Not thread-safe. Throws Error(kDataCorrupt).
class BareJpeg {
 public:
  BareJpeg();
  ~BareJpeg();
  BareJpeg(const BareJpeg&) = delete;
  BareJpeg& operator=(const BareJpeg&) = delete;

  // Returns row-major pixels (H, W, 3), valid until the next call.
  std::span<const std::uint8_t> decode(std::span<const std::byte> encoded);

 private:
  struct Handle;
  Handle* handle_;
  std::vector<std::uint8_t> pixels_;
};

// The limit of memory alone for cifar-train: an image is 3 kB read from anywhere in a data set and 12 kB written,
// past the caches, to a ring of batches larger than them. Nothing is computed.

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

// One image of cifar-train in one hand-written pass, with which the engine is compared.

inline constexpr int kCifarSide = 32, kCifarPlane = kCifarSide * kCifarSide, kCifarPad = 4;
inline constexpr std::size_t kCifarBytes = std::size_t{3} * kCifarPlane;

// value = pixel * scale + shift, rounded after each of the two; one entry per channel.
struct CifarNormal {
  float scale[3], shift[3];

  CifarNormal();
};

// The position of the window's corner in the image, -kCifarPad .. kCifarPad; zeros surround the image.
struct CifarWindow {
  int top = 0, left = 0;
  bool mirrored = false;
};

// (32, 32, 3) u8 -> (3, 32, 32) f32: the window, mirrored or not, normalised. If `to` is aligned to 64 bytes, uses
// non-temporal stores, which the caller fences (finish_cifar). Prefetches `next`, the next image.
using AugmentCifar = void (*)(const std::uint8_t* image, const CifarWindow& window, const CifarNormal& normal,
                              const std::uint8_t* next, float* to);

struct CifarForm {
  const char* name;
  AugmentCifar augment;
};
// Returns the forms that this processor can run, the fastest first, the portable one last. All give the same bits.
std::span<const CifarForm> cifar_forms();

// Fences the stores. REQUIRES: called before another thread reads the images.
void finish_cifar() noexcept;

// Minimal code for a pipeline's work on samples decoded in memory: one loop, without the engine.

// The first field of each record, decoded, and its label if the source has one.
struct DecodedSamples {
  std::size_t count = 0, sample_bytes = 0;
  LargeMemory bytes;
  std::vector<std::int64_t> labels;
};
// Throws DataError if encoded images are not 32 x 32 pixels. If decoding takes a while, a line on standard error
// says how long.
DecodedSamples decoded_samples(const Source& source);

// Thread-safe.
class FusedLoop {
 public:
  // `pipeline`: "trivial", "mnist-train", "fashion-train", "cifar-train" or "cifar-eval". Samples come in `order`;
  // empty: in storage order.
  FusedLoop(const std::string& pipeline, DecodedSamples samples, std::vector<std::uint32_t> order = {});
  static bool exists(const std::string& pipeline);

  std::size_t samples() const { return samples_.count; }
  // Returns the bytes of one sample's tensor in a batch.
  std::size_t row_bytes() const;

  // Makes a batch of the samples at the positions [first, first + count) of the order. `labels` is unchanged if
  // there are none.
  void make(std::size_t first, std::size_t count, std::minstd_rand& random, std::byte* rows,
            std::int64_t* labels) const;

 private:
  enum class Work { kCopy, kScale, kNormalize, kAugment };

  static Work work_of(const std::string& pipeline);
  std::size_t at(std::size_t position) const { return order_.empty() ? position : order_[position]; }
  const std::uint8_t* sample(std::size_t position) const;
  void copy(std::size_t first, std::size_t count, std::byte* rows) const;
  void augment(std::size_t first, std::size_t count, std::minstd_rand& random, float* rows) const;

  Work work_;
  DecodedSamples samples_;
  std::vector<std::uint32_t> order_;
  CifarNormal normal_;
};

// The baseline of `headrace bench input --baseline`: minimal code that does the same work, written without the
// engine, on the same records and threads.

// Returns the name of a pipeline's baseline, for messages and JSON.
std::string baseline_name(const std::string& pipeline);

// Returns the images per second with `threads` threads in that time. Images are decoded into memory beforehand, if
// needed; if that takes a while, a line on standard error says how long.
//   jpeg-*   bare libjpeg-turbo that decodes every record whole (RGB, islow, fancy upsampling), each thread with
//            its own handle over its own share of the records
//   skewed   the pipeline where no thread ever waits for another's sample: a loader of one thread a thread, with
//            different seeds
//   others   FusedLoop, each thread into its own ring of batches
using Baseline = std::function<double(int threads, double seconds)>;
Baseline make_baseline(const std::string& pipeline, const PipelineOptions& options);

// Throws ConfigError if the loop would get decoded images where the engine decodes each one: for encoded images
// that no cache holds.
void require_comparable(const std::string& pipeline, const Source& source, bool cached);

// Returns the images per second that memory alone allows: the pipeline's traffic without its work (CifarTraffic).
// Null if memory does not bound the pipeline, which is all but cifar-train.
Baseline make_memory_bound(const std::string& pipeline);

}  // namespace headrace::tools
