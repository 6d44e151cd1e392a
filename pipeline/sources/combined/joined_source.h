// Records joined field by field: record i has the fields of the i-th record of each part.
#pragma once

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

}  // namespace headrace
