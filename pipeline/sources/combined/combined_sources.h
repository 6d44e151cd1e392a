// Sources made of other sources: joined field by field, one after the other, and cut anew.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// One of the sources that are joined (zipped).
struct JoinedPart {
  SourcePtr source;
  std::uint64_t size = 0;                                 // of its records, those that take part
  std::function<std::uint64_t(std::uint64_t)> record_at;  // thread-safe; null: the record of that number
  std::uint64_t fingerprint = 0;                          // of record_at
  Fields made = {};                                       // once it is processed; empty: as the source holds them
};

// Throws ConfigError naming the first two image files that stand side by side and whose names differ. Names are
// compared without their extensions, and without what all names of a part have in common at either end, in whole
// words: "images/0007" and "0007_mask" are one. Parts whose records are not named as image files are left alone.
// REQUIRES: the parts have equally many records.
void require_paired_names(const std::vector<JoinedPart>& parts);

// Record i has the fields of the i-th record of each part.
class JoinedSource final : public Source {
 public:
  // Throws ConfigError if field names clash or are too many, or if the parts do not fit as ZipOptions::strict
  // says.
  JoinedSource(std::vector<JoinedPart> parts, const ZipOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::string describe(std::uint64_t index) const override;  // "a/1.jpg + b/1.png"

 private:
  void require_equal_lengths() const;
  void name_fields(const ZipOptions& options);
  static const Fields& fields_of(const JoinedPart& part) {
    return part.made.empty() ? part.source->info().fields : part.made;
  }
  static std::uint64_t record_of(const JoinedPart& part, std::uint64_t index) {
    return part.record_at ? part.record_at(index) : index;
  }

  std::vector<JoinedPart> parts_;
  SourceInfo info_;
};

// The records of several sources, one source after the other.
class UnionSource final : public Source {
 public:
  // Throws ConfigError if fields or class names differ. `what` is the requested operation, for messages. `made`:
  // the fields of each part once it is processed, which its bytes are not; empty: all are as the sources hold
  // them.
  UnionSource(const std::string& what, std::vector<SourcePtr> parts, const std::vector<Fields>& made = {});

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override;
  std::uint64_t offset(std::uint64_t index) const noexcept override;
  std::string describe(std::uint64_t index) const override;

 private:
  // Returns the part with this record and changes `index` to the part's own number.
  const Source& part_of(std::uint64_t& index) const;

  std::vector<SourcePtr> parts_;
  std::vector<std::uint64_t> ends_;
  SourceInfo info_;
};

// Each few consecutive records of a dataset as one record.
class WindowedSource final : public Source {
 public:
  // Throws ConfigError if a field is encoded or differs in length from record to record. REQUIRES: `size` > 0.
  WindowedSource(JoinedPart records, const WindowOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::string describe(std::uint64_t index) const override;  // "item/4 to item/7"

 private:
  std::uint64_t record_of(std::uint64_t position) const {
    return part_.record_at ? part_.record_at(position) : position;
  }
  // Returns the positions [first, end) of a window.
  std::uint64_t first_of(std::uint64_t index) const noexcept { return index * shift_; }
  std::uint64_t end_of(std::uint64_t index) const noexcept {
    return first_of(index) + std::min(size_, part_.size - first_of(index));
  }

  JoinedPart part_;
  std::uint64_t size_, shift_;
  std::vector<std::size_t> record_bytes_;  // of each field
  SourceInfo info_;
};

// Each of the N equal samples in a record as a record.
class UnbatchedSource final : public Source {
 public:
  // Throws ConfigError if a field is encoded, or if the first extents are not one fixed number.
  explicit UnbatchedSource(SourcePtr batches);

  const SourceInfo& info() const noexcept override { return info_; }
  // Returns the number of samples in one record: the first extent of every field.
  std::uint64_t rows() const noexcept { return rows_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::string describe(std::uint64_t index) const override;  // "batch[3] row 5"

 private:
  SourcePtr batches_;
  std::uint64_t rows_ = 0;
  std::array<std::size_t, kMaxFields> row_bytes_{};
  SourceInfo info_;
};

}  // namespace headrace
