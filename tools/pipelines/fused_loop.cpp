#include "headrace/tools/pipelines/fused_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/pipelines/bare_jpeg.h"

namespace headrace::tools {
namespace {

// Channels first.
void normalise_image(const std::uint8_t* image, const CifarNormal& normal, float* out) {
  for (int channel = 0; channel < 3; ++channel) {
    float* plane = out + channel * kCifarPlane;
    for (int i = 0; i < kCifarPlane; ++i) {
      plane[i] = static_cast<float>(image[i * 3 + channel]) * normal.scale[channel] + normal.shift[channel];
    }
  }
}

// Prints once, after a number of records, how long the rest takes.
void announce(const Stopwatch& watch, std::uint64_t done, std::uint64_t records) {
  static constexpr std::uint64_t kTimed = 500;
  static constexpr double kWorthSaying = 0.5;  // seconds
  if (done != kTimed) return;
  const double left = watch.seconds() / kTimed * static_cast<double>(records - done);
  if (left <= kWorthSaying) return;
  fmt::print(stderr, "headrace: the baseline needs {} in memory first: about {:.0f} s more\n",
             count_of(records, "sample"), std::ceil(left));
}

}  // namespace

DecodedSamples decoded_samples(const Source& source) {
  const Fields& fields = source.info().fields;
  const bool encoded = fields.front().encoding == Encoding::kImage;
  const auto label = std::ranges::find(fields, "label", &Field::name);
  const std::uint64_t records = source.info().records;
  DecodedSamples samples;
  samples.sample_bytes =
      encoded ? kCifarBytes
              : static_cast<std::size_t>(fields.front().shape.elements()) * size_of(fields.front().dtype);
  samples.count = records;
  samples.bytes = allocate_large(std::max<std::size_t>(records * samples.sample_bytes, 1));
  if (samples.bytes == nullptr) throw std::bad_alloc();
  if (label != fields.end()) samples.labels.resize(records);
  std::vector<std::byte> scratch;
  BareJpeg jpeg;
  const Stopwatch watch;
  for (std::uint64_t record = 0; record < records; ++record) {
    announce(watch, record, records);
    const RecordView view = source.read(record, scratch);
    const std::span<const std::byte> bytes = encoded ? std::as_bytes(jpeg.decode(view.fields[0])) : view.fields[0];
    if (bytes.size() != samples.sample_bytes) {
      throw DataError(ErrorCode::kDataCorrupt, "is not a 32x32 RGB image", {.source = source.describe(record)},
                      "the baseline needs images of one size");
    }
    std::memcpy(samples.bytes.get() + record * samples.sample_bytes, bytes.data(), bytes.size());
    if (samples.labels.empty()) continue;
    const auto& value = view.fields[static_cast<std::size_t>(label - fields.begin())];
    std::memcpy(&samples.labels[record], value.data(), std::min(value.size(), sizeof(std::int64_t)));
  }
  return samples;
}

FusedLoop::Work FusedLoop::work_of(const std::string& pipeline) {
  if (pipeline == "trivial") return Work::kCopy;
  if (pipeline == "mnist-train" || pipeline == "fashion-train") return Work::kScale;
  if (pipeline == "cifar-eval") return Work::kNormalize;
  if (pipeline == "cifar-train") return Work::kAugment;
  throw ConfigError("pipeline " + pipeline + " is no single loop");
}

bool FusedLoop::exists(const std::string& pipeline) {
  static constexpr const char* kNames[] = {"trivial", "mnist-train", "fashion-train", "cifar-eval", "cifar-train"};
  return std::ranges::find(kNames, pipeline) != std::end(kNames);
}

FusedLoop::FusedLoop(const std::string& pipeline, DecodedSamples samples, std::vector<std::uint32_t> order)
    : work_(work_of(pipeline)), samples_(std::move(samples)), order_(std::move(order)) {
  const bool colour = work_ == Work::kNormalize || work_ == Work::kAugment;
  if (colour && samples_.sample_bytes != kCifarBytes) {
    throw ConfigError("the baseline of " + pipeline + " takes 32x32 RGB images");
  }
}

std::size_t FusedLoop::row_bytes() const {
  return work_ == Work::kCopy ? samples_.sample_bytes : samples_.sample_bytes * sizeof(float);
}

const std::uint8_t* FusedLoop::sample(std::size_t position) const {
  return reinterpret_cast<const std::uint8_t*>(samples_.bytes.get()) + at(position) * samples_.sample_bytes;
}

void FusedLoop::copy(std::size_t first, std::size_t count, std::byte* rows) const {
  const std::size_t bytes = samples_.sample_bytes;
  if (order_.empty()) {
    std::memcpy(rows, sample(first), count * bytes);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) std::memcpy(rows + i * bytes, sample(first + i), bytes);
}

void FusedLoop::augment(std::size_t first, std::size_t count, std::minstd_rand& random, float* rows) const {
  constexpr int kOffsets = 2 * kCifarPad + 1;
  const AugmentCifar augment_image = cifar_forms().front().augment;
  for (std::size_t i = first; i < first + count; ++i, rows += kCifarBytes) {
    const unsigned draw = static_cast<unsigned>(random()) >> 4;
    const CifarWindow window{.top = static_cast<int>(draw % kOffsets) - kCifarPad,
                             .left = static_cast<int>(draw / 16 % kOffsets) - kCifarPad,
                             .mirrored = (draw >> 12 & 1) != 0};
    augment_image(sample(i), window, normal_, sample((i + 1) % samples()), rows);
  }
  finish_cifar();
}

void FusedLoop::make(std::size_t first, std::size_t count, std::minstd_rand& random, std::byte* rows,
                     std::int64_t* labels) const {
  auto* out = reinterpret_cast<float*>(rows);
  const std::size_t values = samples_.sample_bytes;  // of a sample that becomes floats
  switch (work_) {
    case Work::kCopy: copy(first, count, rows); break;
    case Work::kScale:
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t* pixels = sample(first + i);
        float* row = out + i * values;
        for (std::size_t j = 0; j < values; ++j) row[j] = static_cast<float>(pixels[j]) * (1.0F / 255.0F);
      }
      break;
    case Work::kNormalize:
      for (std::size_t i = 0; i < count; ++i) normalise_image(sample(first + i), normal_, out + i * values);
      break;
    case Work::kAugment: augment(first, count, random, out); break;
  }
  if (samples_.labels.empty()) return;
  for (std::size_t i = 0; i < count; ++i) labels[i] = samples_.labels[at(first + i)];
}

}  // namespace headrace::tools
