#include "headrace/pipeline/engine/filter_scan.h"

#include <tbb/info.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/index_map.h"
#include "headrace/pipeline/engine/patient_read.h"

namespace headrace {
namespace {

// Records that the system goes on refusing before none is waited for any more: then it is no matter of a moment.
constexpr int kMostInVain = 16;

// What ends the scan: the error of the smallest position, found by threads in any order.
class FirstError {
 public:
  bool is_beyond(std::uint64_t position) const noexcept { return position > at_.load(std::memory_order_relaxed); }

  void note(std::uint64_t position, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && position >= at_.load()) return;
    at_.store(position);
    error_ = std::move(error);
  }

  void raise() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> at_{std::numeric_limits<std::uint64_t>::max()};
  std::exception_ptr error_;
};

// What could not be judged, found by threads in any order.
class Findings {
 public:
  void note(std::uint64_t position, std::uint64_t record, Failure failure) {
    const std::lock_guard lock(mutex_);
    found_.push_back({.position = position, .record = record, .failure = std::move(failure)});
  }

  // Of a record at several positions the smallest one's.
  UnjudgedRecords take() {
    std::ranges::sort(found_, {}, &Finding::position);
    UnjudgedRecords unjudged;
    for (const Finding& finding : found_) unjudged.add(finding.record, finding.failure);
    return unjudged;
  }

 private:
  struct Finding {
    std::uint64_t position, record;
    Failure failure;
  };

  std::mutex mutex_;
  std::vector<Finding> found_;
};

// What the threads of a scan share.
struct Scan {
  const Source& source;
  const RecordFilter& filter;
  const std::string step = describe(filter);
  UnjudgedRecords earlier = {};  // of filters before this one
  Findings findings = {};
  FirstError error = {};
  std::atomic<int> in_vain{0};
};

// Judges the records at 64 positions at a time. One thread.
class Judge {
 public:
  Judge(Scan& scan, const IndexMap& map) : scan_(scan), cursor_(map), size_(map.size()) {}

  std::uint64_t word(std::uint64_t index) {
    std::uint64_t bits = 0;
    const std::uint64_t first = index * 64, end = std::min(first + 64, size_);
    for (std::uint64_t position = first; position < end && !scan_.error.is_beyond(position); ++position) {
      try {
        if (keeps(position)) bits |= std::uint64_t{1} << (position - first);
      } catch (...) {
        scan_.error.note(position, std::current_exception());
      }
    }
    return bits;
  }

 private:
  bool keeps(std::uint64_t position) {
    const std::uint64_t record = cursor_.locate(0, position).record;
    if (scan_.earlier.contains(record)) return true;
    try {
      return judge(read(record));
    } catch (const ConfigError&) {
      throw;
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(scan_.source, record, 0, error);
      if (!failure.is_of_record()) failure.raise();
      scan_.findings.note(position, record, std::move(failure));
      return true;
    }
  }

  RecordView read(std::uint64_t record) {
    try {
      return read_patiently([&] { return scan_.source.read(record, scratch_); },
                            [&] { return scan_.in_vain.load(std::memory_order_relaxed) < kMostInVain; });
    } catch (const DataError& error) {
      if (is_refusal(error)) scan_.in_vain.fetch_add(1, std::memory_order_relaxed);
      throw;
    }
  }

  bool judge(const RecordView& view) const {
    try {
      return scan_.filter.keeps(RawRecord(scan_.source.info().fields, view));
    } catch (const ConfigError& error) {
      throw ConfigError(scan_.step + ": " + error.message(), error.hint());
    } catch (const std::exception& error) {
      throw name_step(scan_.step, error);
    }
  }

  Scan& scan_;
  IndexCursor cursor_;
  std::uint64_t size_;
  std::vector<std::byte> scratch_;
};

}  // namespace

FilterScan run_filter(const Source& source, const std::vector<Stage>& index_stages, const RecordFilter& filter) {
  const IndexMap map(source.info().records, index_stages, 0);
  Scan shared{.source = source, .filter = filter, .earlier = UnjudgedRecords::of(index_stages)};
  std::vector<std::uint64_t> words(static_cast<std::size_t>((map.size() + 63) / 64));
  // Threads of its own: the caller's arena may be at work, and reads may block.
  std::atomic<std::size_t> next{0};
  const auto judge_words = [&] {
    Judge judge(shared, map);
    for (std::size_t i = 0; (i = next.fetch_add(1)) < words.size();) words[i] = judge.word(i);
  };
  {
    std::vector<std::jthread> helpers;
    const auto most = std::min(words.size(), static_cast<std::size_t>(tbb::info::default_concurrency()));
    for (std::size_t i = 1; i < most; ++i) helpers.emplace_back(judge_words);
    judge_words();
  }
  shared.error.raise();
  return {.kept = BitSelect(std::move(words)), .unjudged = shared.findings.take()};
}

}  // namespace headrace
