// Sources of records: numbered collections that any thread may read in any order, or streams that give one record
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

// Files beside the records that are not records.
struct LeftOut {
  std::string what;  // ".gif", "images in val/"
  std::uint64_t files = 0;
  bool operator==(const LeftOut&) const = default;
};
// Returns "12 files left out: 10 .gif, 2 .webp; Headrace reads JPEG and PNG"; empty if none are.
std::string describe(const std::vector<LeftOut>& left_out);

// A column of a table, or a feature of TFRecords, and its use.
struct SourceColumn {
  std::string name;   // as in the data
  std::string holds;  // "integers", "numbers", "text"; "4 floats"
  std::string field;  // its field in the record; empty: it is left out
  bool operator==(const SourceColumn&) const = default;
};
// Returns "left out of each record: width (integers), caption (text)"; empty if none is.
std::string describe(const std::vector<SourceColumn>& columns);

struct SourceInfo {
  std::string name;                  // for people: a path, or the caller's name for it
  std::uint64_t records = 0;         // kUnknownRecords for a stream
  Fields fields;                     // the same for every record
  std::vector<std::string> classes;  // class names by label, if the format has them
  // A label not below this makes its record bad; 0: the number of classes, if there are any.
  std::uint64_t label_count = 0;
  // If the source reads several files one after another: the end of each one's records. Otherwise empty.
  std::vector<std::uint64_t> file_ends = {};
  // Changes with the data: names, sizes, order, or content that is in memory anyway. 0: none.
  std::uint64_t fingerprint = 0;
  // Changes when a file is rewritten, even with the same size: derived from the modification times, whatever they
  // are, of files whose content is not in the fingerprint; std::nullopt if there are none. Keys only caches: a
  // copy of the data is the same stream.
  std::optional<std::uint64_t> revision = {};
  // True if the caller gave the records no identity: the fingerprint is of their form alone, or 0.
  bool anonymous = false;
  // True if all bytes are in memory: read() never blocks and never uses its scratch.
  bool resident = false;
  // True if records come one after another and cannot be read by number: open_stream() gives them, read() does
  // not.
  bool streamed = false;
  // True if every image was decoded without an error when the data were written, and checksums show that it is
  // unchanged: then only the window in use is decoded.
  bool images_checked = false;
  // The names taken for split and class, and why: "train split: train/ (test: test/)". May be empty.
  std::string reading = {};
  std::vector<LeftOut> left_out = {};
  std::vector<SourceColumn> columns = {};  // all columns of the data; empty for other formats
};

// The record count of a stream before its end is seen.
inline constexpr std::uint64_t kUnknownRecords = std::uint64_t{1} << 48;

// A sequence of records of unknown length. One thread at a time.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  // Returns the next record, whose view points into `buffer`; std::nullopt at the end. May block. Throws DataError
  // if this record is bad, and the stream continues after it; any other exception ends it.
  virtual std::optional<RecordView> next(std::vector<std::byte>& buffer) = 0;
};

class Source;
using SourcePtr = std::shared_ptr<const Source>;

// A stream of shards; private to the pipeline.
class ShardedSource;
// The opener's name and arguments; private to the pipeline.
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

  // Returns record `index`. May block on a file if the source is not resident; then the bytes are in `scratch`,
  // which is reused from call to call. Throws DataError with record and offset. REQUIRES: index < info().records.
  virtual RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const = 0;

  // Returns the index of the record's JPEG that lies beside it (JpegIndex::append_to()), in `scratch`; empty:
  // there is none, or it is damaged. Private to the pipeline.
  virtual std::span<const std::byte> jpeg_index(std::uint64_t /*index*/,
                                                std::vector<std::byte>& /*scratch*/) const {
    return {};
  }

  // Returns the records of a stream from number `first` on; null if records have numbers. May block while it skips
  // those before, and throws if the stream cannot be opened again.
  virtual std::unique_ptr<RecordStream> open_stream(std::uint64_t /*first*/) const { return nullptr; }

  // Returns a stream whose shards can be read in any order and any number of times; null for any other source.
  virtual const ShardedSource* sharded() const noexcept { return nullptr; }

  // Returns the record's largest field if it is in memory, for callers who fetch ahead.
  virtual std::span<const std::byte> peek(std::uint64_t /*index*/) const noexcept { return {}; }

  // Announces records that will be read soon, so that a source behind a network fetches them ahead, neighbours
  // together; no records: what was announced and not read is forgotten. Does not block; affects speed only.
  virtual void will_read(std::span<const std::uint64_t> /*records*/) const {}

  // Returns one column per field if all records are equal slices in memory, otherwise none.
  virtual std::span<const FieldColumn> columns() const noexcept { return {}; }

  // Returns the field "label" if it is known without reading the record.
  virtual std::optional<std::int64_t> label(std::uint64_t /*index*/) const noexcept { return std::nullopt; }

  // Returns the record's offset in the file that describe() names or that holds it, after decompression;
  // DataLocation::kUnknown if unknown.
  virtual std::uint64_t offset(std::uint64_t /*index*/) const noexcept { return DataLocation::kUnknown; }

  // Returns the file or archive member of a record, for messages and the quarantine: "train/cat/0007.jpg".
  virtual std::string describe(std::uint64_t index) const = 0;

  // Returns how the file or folder was opened; null if JSON cannot express it: arrays, functions, custom sources.
  const SourceOriginPtr& origin() const noexcept { return origin_; }
  // Returns what the path was recognised as: "images in folders"; empty if it was opened as that.
  const std::string& format() const noexcept { return format_; }

 private:
  friend SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin);
  friend SourcePtr with_format(SourcePtr source, std::string format);
  // Set by openers before the source is shared.
  mutable SourceOriginPtr origin_;
  mutable std::string format_;
};

// Returns in one line how the data were read: format, split, classes, labels, and what is left out, "photos:
// images in folders; train split: train/ (test: test/); 3 classes: cat, dog, emu; 2 files left out: 2 .gif; ...".
std::string describe_reading(const Source& source);

}  // namespace headrace
