#include "headrace/pipeline/inspect.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/scan/record_scan.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {
namespace {

std::uint64_t examined_of(std::uint64_t records, const InspectOptions& options) {
  return options.max_examined == 0 ? records : std::min(records, options.max_examined);
}

void merge(Inspection::Range& into, const Inspection::Range& from, bool first) {
  into.add(from.min, first);
  into.add(from.max, false);
}

// One thread's findings.
struct ImageFindings {
  std::uint64_t bytes = 0, decoded = 0, oriented = 0;
  Inspection::Range height, width;
  std::map<std::int64_t, std::uint64_t> labels;
  std::vector<BadRecord> bad, warned;
};

class InspectPass final : public RecordScan {
 public:
  InspectPass(const SourcePtr& source, const InspectOptions& options)
      : RecordScan(source, examined_of(source->info().records, options), kScanStallSeconds),
        positions_(examined_of(source->info().records, options)),
        labels_(*source) {}

  ImageFindings take() {
    std::ranges::sort(found_.bad, {}, &BadRecord::record);
    std::ranges::sort(found_.warned, {}, &BadRecord::record);
    return std::move(found_);
  }

 private:
  class Examiner;
  std::unique_ptr<Visitor> create_visitor(ThreadState& state) override;

  // Evenly spread, the first record among them.
  std::uint64_t record_at(std::uint64_t position) const override {
    const std::uint64_t records = source().info().records;
    return position * (records / positions_) + position * (records % positions_) / positions_;
  }

  void merge_in(ImageFindings& findings) {
    const std::lock_guard lock(mutex_);
    found_.bytes += findings.bytes;
    if (findings.decoded > 0) {
      merge(found_.height, findings.height, found_.decoded == 0);
      merge(found_.width, findings.width, found_.decoded == 0);
    }
    found_.decoded += findings.decoded;
    for (const auto& [label, records] : findings.labels) found_.labels[label] += records;
    found_.oriented += findings.oriented;
    std::ranges::move(findings.bad, std::back_inserter(found_.bad));
    std::ranges::move(findings.warned, std::back_inserter(found_.warned));
  }

  std::uint64_t positions_;
  LabelCheck labels_;
  std::mutex mutex_;
  ImageFindings found_;  // by mutex_
};

class InspectPass::Examiner final : public Visitor {
 public:
  Examiner(InspectPass& pass, ThreadState& state) : pass_(pass), state_(state) {}

  void visit(std::uint64_t position) override {
    const std::uint64_t record = pass_.record_at(position);
    try {
      examine(record, pass_.read(record, scratch_, state_));
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(pass_.source(), record, 0, error);
      if (!failure.is_of_record()) failure.raise();
      found_.bad.push_back(std::move(failure.what));
    }
  }
  void finish() override { pass_.merge_in(found_); }

 private:
  void examine(std::uint64_t record, const RecordView& view) {
    const Fields& fields = pass_.source().info().fields;
    for (std::size_t i = 0; i < fields.size(); ++i) found_.bytes += view.fields[i].size();
    pass_.labels_.check(view);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].encoding == Encoding::kImage) decode(record, view.fields[i]);
      if (fields[i].name == "label" && fields[i].dtype == DType::kI64 &&
          view.fields[i].size() == sizeof(std::int64_t)) {
        std::int64_t label = 0;
        std::memcpy(&label, view.fields[i].data(), sizeof label);
        ++found_.labels[label];
      }
    }
  }

  void decode(std::uint64_t record, std::span<const std::byte> encoded) {
    ImageSize size;
    try {
      size = decoder_.read_size(encoded);
      pixels_.resize(static_cast<std::size_t>(size.height * size.width * 3));
      decoder_.decode(encoded, pixels_);
    } catch (const Error& error) {
      throw StepError(error.code(), "decode", error.message(), error.hint());
    }
    found_.height.add(size.height, found_.decoded == 0);
    found_.width.add(size.width, found_.decoded == 0);
    ++found_.decoded;
    if (exif_orientation(encoded) != Orientation::kTopLeft) ++found_.oriented;
    if (decoder_.warning().empty()) return;
    const StepError warning(ErrorCode::kDataCorrupt, "decode", decoder_.warning());
    found_.warned.push_back(Failure::of_record(pass_.source(), record, 0, warning).what);
  }

  InspectPass& pass_;
  ThreadState& state_;
  ImageFindings found_;
  ImageDecoder decoder_;
  std::vector<std::byte> scratch_;
  std::vector<std::uint8_t> pixels_;
};

std::unique_ptr<RecordScan::Visitor> InspectPass::create_visitor(ThreadState& state) {
  return std::make_unique<Examiner>(*this, state);
}

// Counts the labels of all records; empty if that requires reading the source.
std::map<std::int64_t, std::uint64_t> count_known_labels(const Source& source) {
  std::map<std::int64_t, std::uint64_t> labels;
  for (std::uint64_t i = 0; i < source.info().records; ++i) {
    if (const std::optional<std::int64_t> label = source.label(i)) ++labels[*label];
  }
  return labels;
}

}  // namespace

void Inspection::Range::add(std::int64_t value, bool first) noexcept {
  min = first ? value : std::min(min, value);
  max = first ? value : std::max(max, value);
}

Inspection inspect_source(const SourcePtr& source, const InspectOptions& options) {
  refuse_stream(*source, "a look at the records");
  Inspection inspection;
  inspection.records = source->info().records;
  inspection.columns = source->info().columns;
  inspection.examined = examined_of(inspection.records, options);
  ImageFindings found;
  if (inspection.examined > 0) {
    const auto pass = std::make_shared<InspectPass>(source, options);
    RecordScan::run(pass);
    found = pass->take();
  }
  inspection.bytes = found.bytes;
  inspection.height = found.height;
  inspection.width = found.width;
  inspection.labels = count_known_labels(*source);
  if (inspection.labels.empty()) inspection.labels = std::move(found.labels);
  for (const auto& [label, records] : inspection.labels) inspection.labelled += records;
  inspection.bad = found.bad.size();
  found.bad.resize(std::min(found.bad.size(), options.max_listed));
  inspection.first_bad = std::move(found.bad);
  inspection.warned = found.warned.size();
  found.warned.resize(std::min(found.warned.size(), options.max_listed));
  inspection.first_warned = std::move(found.warned);
  inspection.oriented = found.oriented;
  return inspection;
}

std::int64_t read_label(const Source& source, std::uint64_t record, std::size_t field,
                        std::vector<std::byte>& scratch) {
  if (const std::optional<std::int64_t> known = source.label(record)) return *known;
  const std::span<const std::byte> bytes = source.read(record, scratch).fields[field];
  std::int64_t label = 0;
  if (bytes.size() != sizeof label) {
    throw DataError(ErrorCode::kDataCorrupt, source.describe(record) + ": its label has another size than 8 bytes",
                    {.source = source.info().name, .record = record});
  }
  std::memcpy(&label, bytes.data(), sizeof label);
  return label;
}

}  // namespace headrace
