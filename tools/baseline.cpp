#include "headrace/tools/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/bare_jpeg.h"

namespace headrace::tools {
namespace {

constexpr int kSide = 32;
constexpr int kPlane = kSide * kSide;
constexpr std::size_t kPixels = std::size_t{kPlane} * 3;
constexpr int kPad = 4;

// Runs `work(thread, keep_going)` -> images done, on every thread; images a second of all together.
double rate_of(int threads, double seconds,
               const std::function<std::uint64_t(int, const std::function<bool()>&)>& work) {
  std::atomic<std::uint64_t> images{0};
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  std::vector<std::thread> pool;
  const Stopwatch clock;
  for (int thread = 0; thread < threads; ++thread) {
    pool.emplace_back([&, thread] {
      try {
        images += work(thread, [&] { return clock.seconds() < seconds; });
      } catch (...) {
        failures[static_cast<std::size_t>(thread)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  const double elapsed = clock.seconds();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return static_cast<double>(images) / elapsed;
}

// One image: crop at (top, left) of the zero-padded picture, mirrored or not, normalised, channels first.
void augment(const std::uint8_t* image, int top, int left, bool mirrored, const float (&scale)[3],
             const float (&shift)[3], float* out) {
  const int first = std::max(0, -left);
  const int last = std::min(kSide, kSide - left);
  for (int y = 0; y < kSide; ++y) {
    const int from = y + top;
    for (int channel = 0; channel < 3; ++channel) {
      float* row = out + channel * kPlane + y * kSide;
      std::fill(row, row + kSide, shift[channel]);
      if (from < 0 || from >= kSide) continue;
      const std::uint8_t* pixels = image + (from * kSide + left) * 3 + channel;
      if (mirrored) {
        for (int x = first; x < last; ++x)
          row[kSide - 1 - x] = static_cast<float>(pixels[x * 3]) * scale[channel] + shift[channel];
      } else {
        for (int x = first; x < last; ++x)
          row[x] = static_cast<float>(pixels[x * 3]) * scale[channel] + shift[channel];
      }
    }
  }
}

}  // namespace

double jpeg_decode_rate(const Source& source, int threads, double seconds) {
  const std::uint64_t records = source.info().records;
  return rate_of(threads, seconds, [&](int thread, const auto& keep_going) {
    BareJpeg jpeg;
    std::vector<std::byte> scratch;
    std::uint64_t done = 0;
    for (std::uint64_t at = static_cast<std::uint64_t>(thread); keep_going();
         at += static_cast<std::uint64_t>(threads)) {
      jpeg.decode(source.read(at % records, scratch).fields.front());
      ++done;
    }
    return done;
  });
}

std::vector<std::uint8_t> decoded_images(const Source& source) {
  static constexpr std::uint64_t kTimed = 500;  // records, to predict the rest
  static constexpr double kWorthSaying = 0.5;   // seconds
  const bool encoded = source.info().fields.front().encoding == Encoding::kImage;
  const std::uint64_t records = source.info().records;
  std::vector<std::uint8_t> images(records * kPixels);
  std::vector<std::byte> scratch;
  BareJpeg jpeg;
  const Stopwatch watch;
  for (std::uint64_t record = 0; record < records; ++record) {
    const double left = watch.seconds() / kTimed * static_cast<double>(records - record);
    if (record == kTimed && left > kWorthSaying) {
      fmt::print(stderr, "headrace: the baseline needs {} images in memory first: about {:.0f} s more\n", records,
                 std::ceil(left));
    }
    const auto bytes = source.read(record, scratch).fields.front();
    const auto pixels = encoded ? jpeg.decode(bytes)
                                : std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (pixels.size() != kPixels) throw ConfigError(source.describe(record) + " is not a 32x32 RGB image");
    std::ranges::copy(pixels, images.begin() + static_cast<std::ptrdiff_t>(record * kPixels));
  }
  return images;
}

double fused_cifar_rate(std::span<const std::uint8_t> images, int threads, double seconds, int batch) {
  static constexpr float kScale[3] = {1 / (255 * 0.2470F), 1 / (255 * 0.2435F), 1 / (255 * 0.2616F)};
  static constexpr float kShift[3] = {-0.4914F / 0.2470F, -0.4822F / 0.2435F, -0.4465F / 0.2616F};
  std::vector<std::uint32_t> order(images.size() / kPixels);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(0));
  return rate_of(threads, seconds, [&](int thread, const auto& keep_going) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::vector<float> out(static_cast<std::size_t>(batch) * kPixels);
    std::size_t at = static_cast<std::size_t>(thread) * order.size() / static_cast<std::size_t>(threads);
    std::uint64_t done = 0;
    while (keep_going()) {
      for (int row = 0; row < batch; ++row, at = (at + 1) % order.size()) {
        const unsigned draw = static_cast<unsigned>(random()) >> 4;
        augment(images.data() + order[at] * kPixels, static_cast<int>(draw % (2 * kPad + 1)) - kPad,
                static_cast<int>(draw / 16 % (2 * kPad + 1)) - kPad, (draw >> 12 & 1) != 0, kScale, kShift,
                out.data() + static_cast<std::size_t>(row) * kPixels);
      }
      done += static_cast<std::uint64_t>(batch);
    }
    return done;
  });
}

double unordered_rate(const std::string& pipeline, const PipelineOptions& options, int threads, double seconds) {
  struct Stream {
    DeviceGroup devices = open_devices("cpu:1", DeviceNeed::kMemory);
    std::optional<Loader> loader;
  };
  constexpr std::uint64_t kWithoutEnd = std::uint64_t{1} << 30;
  std::vector<Stream> streams(static_cast<std::size_t>(threads));
  for (Stream& stream : streams) {
    const auto seed = static_cast<std::uint64_t>(&stream - streams.data());
    stream.loader.emplace(make_pipeline(pipeline, options), stream.devices,
                          LoaderOptions{.seed = seed, .epochs = kWithoutEnd, .threads = 1});
    stream.loader->next(0);  // started, its slots allocated
  }
  return rate_of(threads, seconds, [&](int thread, const auto& keep_going) {
    std::uint64_t done = 0;
    while (keep_going()) {
      const std::optional<Batch> batch = streams[static_cast<std::size_t>(thread)].loader->next(0);
      done += static_cast<std::uint64_t>(batch->examples());
    }
    return done;
  });
}

std::string baseline_name(const std::string& pipeline) {
  if (pipeline.starts_with("jpeg-")) return "bare libjpeg-turbo, whole images to RGB";
  if (pipeline == "cifar-train") return "one fused loop over decoded images";
  if (pipeline == "skewed") return "the same in no order, a loader a thread";
  return {};
}

Baseline make_baseline(const std::string& pipeline, const PipelineOptions& options) {
  static constexpr int kCifarBatch = 512;
  if (pipeline == "skewed") {
    return [=](int threads, double seconds) { return unordered_rate(pipeline, options, threads, seconds); };
  }
  if (baseline_name(pipeline).empty()) {
    throw ConfigError("pipeline " + pipeline + " has no baseline", "jpeg-*, cifar-train and skewed have one");
  }
  const SourcePtr source = open_source(options.data, options.split.value_or(Split::kTrain), options.source);
  if (pipeline.starts_with("jpeg-")) {
    return [=](int threads, double seconds) { return jpeg_decode_rate(*source, threads, seconds); };
  }
  const auto images = std::make_shared<const std::vector<std::uint8_t>>(decoded_images(*source));
  return [=](int threads, double seconds) { return fused_cifar_rate(*images, threads, seconds, kCifarBatch); };
}

}  // namespace headrace::tools
