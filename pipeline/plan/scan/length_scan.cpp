#include "headrace/pipeline/plan/scan/length_scan.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/scan/record_scan.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {
namespace {

class LengthPass final : public RecordScan {
 public:
  LengthPass(const SourcePtr& source, std::vector<PaddedField> paddings)
      : RecordScan(source, source->info().records, kScanStallSeconds),
        paddings_(std::move(paddings)),
        longest_(paddings_.size()) {}

  std::vector<PaddedField> take() {
    for (std::size_t i = 0; i < paddings_.size(); ++i) {
      // At least one entry: a tensor without elements would be none.
      if (paddings_[i].length == 0) paddings_[i].length = std::max<std::int64_t>(1, longest_[i]);
    }
    return std::move(paddings_);
  }

 private:
  class Reader;
  std::unique_ptr<Visitor> create_visitor(ThreadState& state) override;
  std::uint64_t record_at(std::uint64_t position) const override { return position; }

  void merge(const std::vector<std::int64_t>& longest) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < longest.size(); ++i) longest_[i] = std::max(longest_[i], longest[i]);
  }

  std::vector<PaddedField> paddings_;
  std::mutex mutex_;
  std::vector<std::int64_t> longest_;  // entries, a padding each; by mutex_
};

class LengthPass::Reader final : public Visitor {
 public:
  Reader(LengthPass& pass, ThreadState& state) : pass_(pass), state_(state), longest_(pass.paddings_.size()) {}

  void visit(std::uint64_t position) override {
    try {
      measure(pass_.read(position, scratch_, state_));
    } catch (const std::exception& error) {
      const Failure failure = Failure::of_record(pass_.source(), position, 0, error);
      if (!failure.is_of_record()) failure.raise();
    }
  }
  void finish() override { pass_.merge(longest_); }

 private:
  void measure(const RecordView& view) {
    const auto is_whole = [&](const PaddedField& padding) {
      return view.fields[padding.field].size() % padding.row_bytes == 0;
    };
    if (!std::ranges::all_of(pass_.paddings_, is_whole)) return;
    for (std::size_t i = 0; i < longest_.size(); ++i) {
      const PaddedField& padding = pass_.paddings_[i];
      longest_[i] =
          std::max(longest_[i], static_cast<std::int64_t>(view.fields[padding.field].size() / padding.row_bytes));
    }
  }

  LengthPass& pass_;
  ThreadState& state_;
  std::vector<std::int64_t> longest_;
  std::vector<std::byte> scratch_;
};

std::unique_ptr<RecordScan::Visitor> LengthPass::create_visitor(ThreadState& state) {
  return std::make_unique<Reader>(*this, state);
}

}  // namespace

std::vector<PaddedField> with_lengths(const SourcePtr& source, std::vector<PaddedField> paddings) {
  if (std::ranges::all_of(paddings, [](const PaddedField& padding) { return padding.length > 0; }))
    return paddings;
  const auto pass = std::make_shared<LengthPass>(source, std::move(paddings));
  RecordScan::run(pass);
  return pass->take();
}

}  // namespace headrace
