#include "headrace/pipeline/utilities/record_packing.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/image_recoder.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/tasks/retry.h"

namespace headrace {

namespace {

constexpr std::size_t kRecordsAThread = 16;     // made at a time
constexpr std::uint64_t kAnnouncedAhead = 256;  // announced to a source behind a network

bool has_encoded(const Source& source) {
  return std::ranges::any_of(source.info().fields, [](const Field& f) { return f.encoding == Encoding::kImage; });
}

// Copying bytes is the disk's work: more threads would wait for it.
std::size_t threads_for(const Source& source, const ConvertOptions& options) {
  if (!has_encoded(source)) return 1;
  return options.threads > 0 ? static_cast<std::size_t>(options.threads)
                             : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

// One thread's tools for packing records.
class RecordPacking::Packer {
 public:
  Packer(const Source& source, const LabelCheck& labels, const RecodeOptions& options)
      : source_(source), labels_(labels), recoder_(options) {}

  void pack(std::uint64_t record, Packed& to) {
    to.failure.reset();
    to.jpeg_index.clear();
    try {
      const RecordView view = read_with_retries(
          system_clock(), [&] { return source_.read(record, scratch_); }, [] { return true; });
      labels_.check(view);
      const Fields& fields = source_.info().fields;
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto bytes = fields[i].encoding == Encoding::kImage ? recode(view.fields[i]) : view.fields[i];
        to.bytes[i].assign(bytes.begin(), bytes.end());
        if (fields[i].encoding != Encoding::kImage || !to.jpeg_index.empty()) continue;
        if (const JpegIndex* const index = recoder_.index(); index != nullptr) index->append_to(to.jpeg_index);
      }
    } catch (const std::exception& error) {
      to.failure = Failure::of_record(source_, record, 0, error);
    }
  }

 private:
  std::span<const std::byte> recode(std::span<const std::byte> image) {
    try {
      return recoder_.recode(image);
    } catch (const Error& error) {
      throw StepError(error.code(), "convert", error.message(), error.hint());
    }
  }

  const Source& source_;
  const LabelCheck& labels_;
  ImageRecoder recoder_;
  std::vector<std::byte> scratch_;
};

RecordPacking::RecordPacking(const Source& source, const ConvertOptions& options)
    : source_(source), labels_(source) {
  const RecodeOptions recode{
      .max_side = options.max_side, .quality = options.quality, .apply_orientation = options.apply_orientation};
  for (std::size_t i = 0; i < threads_for(source, options); ++i) {
    packers_.push_back(std::make_unique<Packer>(source_, labels_, recode));
  }
  records_.resize(packers_.size() * kRecordsAThread);
}

RecordPacking::~RecordPacking() = default;

// A few records for each thread at a time, which are then given away in order.
void RecordPacking::run(std::uint64_t first, std::uint64_t count, const Take& take) {
  const std::uint64_t end = first + count;
  announced_ = first;
  for (; first < end; first += records_.size()) {
    const std::uint64_t some = std::min<std::uint64_t>(records_.size(), end - first);
    announce(std::min(end, first + some + kAnnouncedAhead));
    make(first, some);
    for (std::uint64_t i = 0; i < some; ++i) take(first + i, records_[i]);
  }
}

void RecordPacking::announce(std::uint64_t end) {
  std::vector<std::uint64_t> records(static_cast<std::size_t>(end - announced_));
  std::iota(records.begin(), records.end(), announced_);
  if (!records.empty()) source_.will_read(records);
  announced_ = end;
}

void RecordPacking::make(std::uint64_t first, std::uint64_t count) {
  std::atomic<std::uint64_t> next{0};
  const auto work = [&](Packer& packer) {
    for (std::uint64_t i = 0; (i = next.fetch_add(1)) < count;) packer.pack(first + i, records_[i]);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < packers_.size(); ++i) helpers.emplace_back(work, std::ref(*packers_[i]));
  work(*packers_.front());
}

}  // namespace headrace
