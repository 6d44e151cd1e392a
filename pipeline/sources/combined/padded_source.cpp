#include "headrace/pipeline/sources/combined/padded_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"

namespace headrace {

PaddedSource::PaddedSource(SourcePtr source, std::vector<PaddedField> paddings, PaddedLength common)
    : source_(std::move(source)),
      paddings_(std::move(paddings)),
      common_(std::move(common)),
      info_(source_->info()) {
  Fingerprint fingerprint("padded 1");
  fingerprint.add(info_.fingerprint);
  for (const PaddedField& padding : paddings_) {
    Field& field = info_.fields[padding.field];
    std::vector<std::int64_t> extents(field.shape.extents().begin(), field.shape.extents().end());
    extents.front() = padding.length > 0 ? padding.length : Shape::kDynamic;
    field.shape = Shape(std::span<const std::int64_t>(extents));
    const std::string length_name = field.name + "_length";
    info_.fields.push_back({.name = length_name, .dtype = DType::kI64, .shape = {}});
    fingerprint.add(std::uint64_t{padding.field}).add(static_cast<std::uint64_t>(padding.length));
    fingerprint.add(std::uint64_t{std::to_integer<unsigned>(padding.value)});
  }
  if (common_.to) fingerprint.add(common_.identity);
  info_.resident = false;  // the padded bytes are made in the reader's scratch
  info_.fingerprint = fingerprint.value();
}

RecordView PaddedSource::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  BorrowedBytes own;
  return padded(source_->read(index, *own), index, scratch);
}

class PaddedSource::PaddedStream final : public RecordStream {
 public:
  PaddedStream(const PaddedSource& source, std::unique_ptr<RecordStream> stream, std::uint64_t first)
      : source_(source), stream_(std::move(stream)), next_(first) {}

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    const std::uint64_t record = next_++;
    const std::optional<RecordView> view = stream_->next(unpadded_);
    if (!view) return std::nullopt;
    return source_.padded(*view, record, buffer);
  }

 private:
  const PaddedSource& source_;  // outlives its streams
  std::unique_ptr<RecordStream> stream_;
  std::uint64_t next_;
  std::vector<std::byte> unpadded_;
};

std::unique_ptr<RecordStream> PaddedSource::open_stream(std::uint64_t first) const {
  return std::make_unique<PaddedStream>(*this, source_->open_stream(first), first);
}

RecordView PaddedSource::padded(const RecordView& view, std::uint64_t index,
                                std::vector<std::byte>& scratch) const {
  std::int64_t common = 0;
  if (common_.to) {
    const std::size_t entries = view.fields[common_.of.field].size() / common_.of.row_bytes;
    common = common_.to(static_cast<std::int64_t>(entries));
  }
  const auto of_common_length = [&](PaddedField padding) {
    if (padding.length == 0) padding.length = common;
    return padding;
  };
  const std::size_t fields = source_->info().fields.size();
  std::array<std::size_t, kMaxFields> offset, size;
  std::size_t end = 0;
  const auto reserve = [&](std::size_t field, std::size_t bytes) {
    offset[field] = end;
    size[field] = bytes;
    end += (bytes + 15) / 16 * 16;
  };
  for (std::size_t i = 0; i < fields; ++i) reserve(i, view.fields[i].size());
  for (std::size_t i = 0; i < paddings_.size(); ++i) {
    const PaddedField padding = of_common_length(paddings_[i]);
    const std::size_t bytes = view.fields[padding.field].size();
    if (bytes % padding.row_bytes != 0 || bytes > padding.bytes()) {
      throw unpaddable(info_, index, padding, bytes);
    }
    reserve(padding.field, padding.bytes());
    reserve(fields + i, sizeof(std::int64_t));
  }
  if (scratch.size() < end) scratch.resize(end);
  RecordView result;
  for (std::size_t i = 0; i < fields; ++i) {
    std::ranges::copy(view.fields[i], scratch.begin() + static_cast<std::ptrdiff_t>(offset[i]));
    result.fields[i] = std::span<const std::byte>(scratch).subspan(offset[i], size[i]);
  }
  for (std::size_t i = 0; i < paddings_.size(); ++i) {
    const PaddedField padding = of_common_length(paddings_[i]);
    const std::size_t bytes = view.fields[padding.field].size();
    std::fill_n(scratch.begin() + static_cast<std::ptrdiff_t>(offset[padding.field] + bytes),
                padding.bytes() - bytes, padding.value);
    const auto length = static_cast<std::int64_t>(bytes / padding.row_bytes);
    std::memcpy(scratch.data() + offset[fields + i], &length, sizeof length);
    result.fields[fields + i] = std::span<const std::byte>(scratch).subspan(offset[fields + i], sizeof length);
  }
  return result;
}

}  // namespace headrace
