// Where records come from: a numbered collection that any thread may read in any order, or a stream that gives one
// after another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/record.h"

namespace HEADRACE_API headrace {

// Files that lie there and are no records.
struct LeftOut {
  std::string what;  // ".gif", "images in val/"
  std::uint64_t files = 0;
  bool operator==(const LeftOut&) const = default;
};
// "12 files left out: 10 .gif, 2 .webp; Headrace reads JPEG and PNG"; empty where none are.
std::string describe(const std::vector<LeftOut>& left_out);

// A column of a table, or a feature of TFRecords, and what became of it.
struct SourceColumn {
  std::string name;   // as the data call it
  std::string holds;  // "integers", "numbers", "text"; "4 floats"
  std::string field;  // that it is; empty: it is left out
  bool operator==(const SourceColumn&) const = default;
};
// "left out of each record: width (integers), caption (text)"; empty where none is.
std::string describe(const std::vector<SourceColumn>& columns);

struct SourceInfo {
  std::string name;                  // for people: a path, or what the caller called it
  std::uint64_t records = 0;         // of a stream kUnknownRecords
  Fields fields;                     // the same for every record
  std::vector<std::string> classes;  // class names by label, where the format has them
  // The field "label" is below this, or else the record is bad; 0: as many as there are classes, if there are any.
  std::uint64_t label_count = 0;
  // Where the source reads several files one after another: the end of each one's records. Else empty.
  std::vector<std::uint64_t> file_ends = {};
  // Changes when the data does: names, sizes, order, or content that is in memory anyway. 0: there is none.
  std::uint64_t fingerprint = 0;
  // Changes when a file is written again, even with as many bytes: the times of change, which may be any, of files
  // whose content is not in the fingerprint; none where there are no such files. Keys caches, and nothing else: a
  // copy of the data is the same stream.
  std::optional<std::uint64_t> revision = {};
  // True where the maker of the records gave no identity: the fingerprint is of their form alone, or 0.
  bool anonymous = false;
  // True when all bytes are in memory: read() never blocks and never uses its scratch.
  bool resident = false;
  // True where records come one after another and cannot be asked for by number: open_stream() gives them, read()
  // does not.
  bool streamed = false;
  std::vector<LeftOut> left_out = {};
  std::vector<SourceColumn> columns = {};  // all that the data have; of other formats none
};

// How many records a stream counts as having before its end is seen.
inline constexpr std::uint64_t kUnknownRecords = std::uint64_t{1} << 48;

// Records one after another, of an unknown number. One thread at a time.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  // The next record: its bytes are put into `buffer`, which a view points into. Nothing at the end. May block.
  // A DataError is this record's, which is a bad one, and the stream goes on behind it; anything else ends it.
  virtual std::optional<RecordView> next(std::vector<std::byte>& buffer) = 0;
};

class Source;
using SourcePtr = std::shared_ptr<const Source>;

// The opener's name and arguments; known to the pipeline's own files.
class SourceOrigin;
using SourceOriginPtr = std::shared_ptr<const SourceOrigin>;

// Immutable after construction and thread-safe.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  virtual const SourceInfo& info() const noexcept = 0;

  // Record `index` < info().records. May block on a file where the source is not resident; then the bytes
  // are in `scratch`, which is reused from call to call. Throws DataError with record and offset.
  virtual RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const = 0;

  // Of a stream: its records from number `first` on. May block while it passes over those before, and throws where
  // the stream cannot be opened once more. Null where records have numbers.
  virtual std::unique_ptr<RecordStream> open_stream(std::uint64_t /*first*/) const { return nullptr; }

  // The record's largest field, where it lies in memory: for those who fetch ahead.
  virtual std::span<const std::byte> peek(std::uint64_t /*index*/) const noexcept { return {}; }

  // Where all records lie as equal slices in memory: one column a field. Else empty.
  virtual std::span<const FieldColumn> columns() const noexcept { return {}; }

  // The field "label", where it is known without reading the record.
  virtual std::optional<std::int64_t> label(std::uint64_t /*index*/) const noexcept { return std::nullopt; }

  // Where the record begins in the file that describe() names or that holds it, of a compressed one unpacked; else
  // DataLocation::kUnknown.
  virtual std::uint64_t offset(std::uint64_t /*index*/) const noexcept { return DataLocation::kUnknown; }

  // For messages and the quarantine: the file or archive member of a record, "train/cat/0007.jpg".
  virtual std::string describe(std::uint64_t index) const = 0;

  // How the file or folder was opened; null where that cannot be written down: arrays, functions, the caller's
  // own.
  const SourceOriginPtr& origin() const noexcept { return origin_; }

 private:
  friend SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin);
  mutable SourceOriginPtr origin_;  // set by openers, before anybody else has the source
};

}  // namespace headrace
