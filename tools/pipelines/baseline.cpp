#include "headrace/tools/pipelines/baseline.h"

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"

//
#include <jpeglib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::tools {

struct BareJpeg::Handle {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf on_error{};
};

namespace {

[[noreturn]] void jump_out(j_common_ptr jpeg) { std::longjmp(*static_cast<std::jmp_buf*>(jpeg->client_data), 1); }

void stay_quiet(j_common_ptr) {}

// False when the library gave up. Nothing here has a destructor: longjmp leaves through it.
bool read_header(jpeg_decompress_struct& jpeg, std::jmp_buf& on_error, std::span<const std::byte> encoded) {
  if (setjmp(on_error) != 0) return false;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
  return true;
}

bool read_rows(jpeg_decompress_struct& jpeg, std::jmp_buf& on_error, std::uint8_t* pixels) {
  if (setjmp(on_error) != 0) return false;
  const std::size_t stride = std::size_t{jpeg.output_width} * 3;
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels + jpeg.output_scanline * stride;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

BareJpeg::BareJpeg() : handle_(new Handle) {
  handle_->jpeg.err = jpeg_std_error(&handle_->errors);
  handle_->errors.error_exit = jump_out;
  handle_->errors.output_message = stay_quiet;
  handle_->jpeg.client_data = &handle_->on_error;
  jpeg_create_decompress(&handle_->jpeg);
}

BareJpeg::~BareJpeg() {
  jpeg_destroy_decompress(&handle_->jpeg);
  delete handle_;
}

std::span<const std::uint8_t> BareJpeg::decode(std::span<const std::byte> encoded) {
  auto& jpeg = handle_->jpeg;
  bool good = read_header(jpeg, handle_->on_error, encoded);
  if (good) {
    pixels_.resize(std::size_t{jpeg.output_width} * jpeg.output_height * 3);
    good = read_rows(jpeg, handle_->on_error, pixels_.data());
  }
  if (!good) {
    jpeg_abort_decompress(&jpeg);
    throw Error(ErrorCode::kDataCorrupt, "the baseline could not decode a JPEG", "it needs intact JPEG files");
  }
  return pixels_;
}

}  // namespace headrace::tools

namespace headrace::tools {
namespace {

constexpr std::size_t kImages = 50'000, kRing = 3 * 512;
constexpr std::size_t kRows = 32, kRowRead = 96, kRowWritten = 384;

using MoveRow = void (*)(const std::byte* from, std::byte* to);

void move_row_cached(const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < kRowWritten; i += kRowRead) std::memcpy(to + i, from, kRowRead);
}

// 96 bytes read, what they come to written over 384.
#if defined(__x86_64__)
[[gnu::target("avx")]] void move_row_avx(const std::byte* from, std::byte* to) {
  const auto* in = reinterpret_cast<const __m256i*>(from);
  const __m256 a = _mm256_castsi256_ps(_mm256_loadu_si256(in)),
               b = _mm256_castsi256_ps(_mm256_loadu_si256(in + 1)),
               c = _mm256_castsi256_ps(_mm256_loadu_si256(in + 2));
  const __m256 value = _mm256_xor_ps(a, _mm256_xor_ps(b, c));
  for (std::size_t i = 0; i < kRowWritten; i += 32) _mm256_stream_ps(reinterpret_cast<float*>(to + i), value);
}
MoveRow choose_move_row() { return __builtin_cpu_supports("avx") ? move_row_avx : move_row_cached; }
#else
MoveRow choose_move_row() { return move_row_cached; }
#endif

LargeMemory touched_memory(std::size_t bytes) {
  LargeMemory memory = allocate_large(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 1, bytes);
  return memory;
}

}  // namespace

CifarTraffic::CifarTraffic() : images_(touched_memory(kImages * kRows * kRowRead)), order_(kImages) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
}

const std::byte* CifarTraffic::image(std::size_t position) const {
  return images_.get() + order_[position % kImages] * kRows * kRowRead;
}

CifarTraffic::Lane::Lane(const CifarTraffic& traffic, std::size_t first)
    : traffic_(traffic), at_(first), ring_(touched_memory(kRing * kRows * kRowWritten)) {}

void CifarTraffic::Lane::move_image() {
  static const MoveRow move_row = choose_move_row();
  FetchAhead ahead({traffic_.image(at_ + 1), kRows * kRowRead}, kRows);
  const std::byte* const from = traffic_.image(at_);
  std::byte* const to = ring_.get() + at_ % kRing * kRows * kRowWritten;
  for (std::size_t row = 0; row < kRows; ++row) {
    ahead.fetch_piece();
    move_row(from + row * kRowRead, to + row * kRowWritten);
  }
  ++at_;
}

namespace {

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

double jpeg_decode_rate(const Source& source, int threads, double seconds) {
  const std::uint64_t records = source.info().records;
  return rate_of(threads, seconds, [&](int thread, const auto& keep_going) {
    BareJpeg jpeg;
    std::vector<std::byte> scratch;
    std::uint64_t done = 0;
    for (std::uint64_t at = static_cast<std::uint64_t>(thread); keep_going();
         at += static_cast<std::uint64_t>(threads)) {
      jpeg.decode(source.read(at % records, scratch).fields[0]);
      ++done;
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

constexpr std::size_t kRingBatches = 3;  // one being made, one handed over, one in use

double fused_rate(const FusedLoop& loop, int threads, double seconds, std::size_t batch) {
  return rate_of(threads, seconds, [&](int thread, const auto& keep_going) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    const std::size_t batch_bytes = batch * loop.row_bytes();
    const LargeMemory ring = allocate_large(kRingBatches * batch_bytes);
    if (ring == nullptr) throw std::bad_alloc();
    std::vector<std::int64_t> labels(batch);
    std::size_t at = static_cast<std::size_t>(thread) * loop.samples() / static_cast<std::size_t>(threads);
    std::uint64_t done = 0;
    for (std::size_t slot = 0; keep_going(); slot = (slot + 1) % kRingBatches) {
      const std::size_t count = std::min(batch, loop.samples() - at);
      loop.make(at, count, random, ring.get() + slot * batch_bytes, labels.data());
      at = (at + count) % loop.samples();
      done += count;
    }
    return done;
  });
}

double memory_rate(const CifarTraffic& traffic, int threads, double seconds) {
  constexpr std::uint64_t kAtATime = 512;
  std::vector<CifarTraffic::Lane> lanes;
  for (int thread = 0; thread < threads; ++thread) {
    lanes.emplace_back(traffic,
                       traffic.images() * static_cast<std::size_t>(thread) / static_cast<std::size_t>(threads));
  }
  return rate_of(threads, seconds, [&](int thread, const auto& keep_going) {
    CifarTraffic::Lane& lane = lanes[static_cast<std::size_t>(thread)];
    std::uint64_t done = 0;
    for (; keep_going(); done += kAtATime) {
      for (std::uint64_t i = 0; i < kAtATime; ++i) lane.move_image();
    }
    return done;
  });
}

std::vector<std::uint32_t> shuffled_order(std::size_t samples) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(0));
  return order;
}

}  // namespace

std::string baseline_name(const std::string& pipeline) {
  if (pipeline == "skewed") return "the same in no order, a loader a thread";
  if (pipeline.starts_with("jpeg-")) return "bare libjpeg-turbo, whole images to RGB";
  if (pipeline == "trivial") return "one loop that copies";
  return "one hand-vectorised loop over decoded images";
}

void require_comparable(const std::string& pipeline, const Source& source, bool cached) {
  const bool encoded = std::ranges::any_of(source.info().fields,
                                           [](const Field& field) { return field.encoding == Encoding::kImage; });
  if (cached || !encoded || !FusedLoop::exists(pipeline)) return;
  throw ConfigError("the baseline of " + pipeline +
                        " is a loop over decoded images, and the engine would decode each of its own",
                    joined({advice("give {} and measure later passes", named("PipelineOptions::cache", "memory")),
                            "the baseline of jpeg-train decodes, too"},
                           "; "));
}

Baseline make_memory_bound(const std::string& pipeline) {
  if (pipeline != "cifar-train") return nullptr;
  const auto traffic = std::make_shared<const CifarTraffic>();
  return [=](int threads, double seconds) { return memory_rate(*traffic, threads, seconds); };
}

Baseline make_baseline(const std::string& pipeline, const PipelineOptions& options) {
  if (pipeline == "skewed") {
    return [=](int threads, double seconds) { return unordered_rate(pipeline, options, threads, seconds); };
  }
  const SourcePtr source = source_of(pipeline, options);
  if (!FusedLoop::exists(pipeline)) {
    return [=](int threads, double seconds) { return jpeg_decode_rate(*source, threads, seconds); };
  }
  DecodedSamples samples = decoded_samples(*source);
  const auto batch = static_cast<std::size_t>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(options.global_batch), samples.count));
  std::vector<std::uint32_t> order;
  if (is_shuffled(pipeline)) order = shuffled_order(samples.count);
  const auto loop = std::make_shared<const FusedLoop>(pipeline, std::move(samples), std::move(order));
  return [=](int threads, double seconds) { return fused_rate(*loop, threads, seconds, batch); };
}

}  // namespace headrace::tools
