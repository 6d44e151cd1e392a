#include "headrace/pipeline/plan/scan/bucket_scan.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/scan/record_scan.h"
#include "headrace/pipeline/plan/scan/scan_findings.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMaxUnread = 65536;  // as RecordFilter::max_failures

class BucketPass final : public RecordScan {
 public:
  BucketPass(const SourcePtr& source, const std::vector<StagePtr>& index_stages, const PaddedField& judged,
             std::vector<std::int64_t> boundaries, IndexMap map)
      : RecordScan(source, map.size(), kScanStallSeconds),
        judged_(judged),
        boundaries_(std::move(boundaries)),
        map_(std::move(map)),
        earlier_(FilterFailures::of(index_stages)),
        findings_(kMaxUnread, "see what is wrong with the data"),
        found_{.buckets = std::vector<std::uint8_t>(map_.size()),
               .counts = std::vector<std::uint64_t>(boundaries_.size() + 1)} {}

  BucketScan take() {
    for (const std::uint8_t bucket : found_.buckets) ++found_.counts[bucket];
    found_.failures = findings_.take();
    return std::move(found_);
  }

 private:
  class Judge;
  std::unique_ptr<Visitor> create_visitor(ThreadState& state) override;
  std::uint64_t record_at(std::uint64_t position) const override {
    return IndexCursor(map_).locate(0, position).record;
  }
  void merge(std::int64_t longest) {
    const std::lock_guard lock(mutex_);
    found_.longest = std::max(found_.longest, longest);
  }

  PaddedField judged_;
  std::vector<std::int64_t> boundaries_;
  IndexMap map_;
  FilterFailures earlier_;  // of filters
  ScanFindings findings_;
  std::mutex mutex_;
  BucketScan found_;  // a position's bucket is one thread's; `longest` by mutex_
};

class BucketPass::Judge final : public Visitor {
 public:
  Judge(BucketPass& pass, ThreadState& state) : pass_(pass), state_(state), cursor_(pass.map_) {}

  void visit(std::uint64_t position) override {
    const std::uint64_t record = cursor_.locate(0, position).record;
    if (pass_.earlier_.contains(record)) return;
    try {
      pass_.found_.buckets[position] = bucket_of(pass_.read(record, scratch_, state_));
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(pass_.source(), record, 0, error);
      if (!failure.is_of_record()) failure.raise();
      pass_.findings_.note(position, record, std::move(failure));
    }
  }
  void finish() override { pass_.merge(longest_); }

 private:
  std::uint8_t bucket_of(const RecordView& view) {
    const std::size_t bytes = view.fields[pass_.judged_.field].size();
    const auto length = static_cast<std::int64_t>(bytes / pass_.judged_.row_bytes);
    longest_ = std::max(longest_, length);
    return static_cast<std::uint8_t>(std::ranges::lower_bound(pass_.boundaries_, length) -
                                     pass_.boundaries_.begin());
  }

  BucketPass& pass_;
  ThreadState& state_;
  IndexCursor cursor_;
  std::int64_t longest_ = 0;
  std::vector<std::byte> scratch_;
};

std::unique_ptr<RecordScan::Visitor> BucketPass::create_visitor(ThreadState& state) {
  return std::make_unique<Judge>(*this, state);
}

}  // namespace

BucketScan run_bucket_scan(const SourcePtr& source, const std::vector<StagePtr>& index_stages,
                           const PaddedField& judged, const std::vector<std::int64_t>& boundaries) {
  IndexMap map(source->info().records, index_stages, 0);
  const auto pass = std::make_shared<BucketPass>(source, index_stages, judged, boundaries, std::move(map));
  RecordScan::run(pass);
  return pass->take();
}

}  // namespace headrace
