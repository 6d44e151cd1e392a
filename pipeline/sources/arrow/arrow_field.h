// One field of all records of an Arrow table: slices of its memory where the bytes lie there as they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/sources/arrow/arrow_cells.h"
#include "headrace/pipeline/sources/arrow/arrow_columns.h"

namespace headrace {

// A record's place in a table.
struct ArrowRow {
  std::size_t batch = 0;
  std::int64_t row = 0;      // within the batch
  std::uint64_t record = 0;  // within the table
};

using ArrowColumnCells = std::vector<ArrowCells>;  // of a column, by batch

// The columns of one field in all batches, which outlive this.
struct ArrowTableCells {
  std::vector<ArrowColumnCells> columns;
  ArrowColumnCells files = {};     // paths of files in place of bytes that are null; empty: there are none
  std::vector<std::int64_t> rows;  // by batch
  std::uint64_t records = 0;

  // Calls visit(ArrowRow) for each record, in order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    ArrowRow at;
    for (; at.batch < rows.size(); ++at.batch) {
      for (at.row = 0; at.row < rows[at.batch]; ++at.row, ++at.record) visit(at);
    }
  }
};

// Immutable after construction and thread-safe.
class ArrowField {
 public:
  // Looks at every record, and converts what is not a slice of the table, up to the options' memory limit.
  // `classes` are the names to number the values of a column of classes by; none: those that occur. Throws
  // ConfigError naming the column.
  ArrowField(const ArrowType& root, const ArrowColumn& column, ArrowTableCells cells, const ArrowOptions& options,
             const std::vector<std::string>& classes);

  const Field& field() const noexcept { return field_; }
  const std::vector<std::string>& classes() const noexcept { return classes_; }
  // Returns why the field of a record is bad; empty if it is not.
  std::string why_bad(const ArrowRow& at) const;
  bool is_bad(std::uint64_t record) const noexcept { return !bad_.empty() && bad_[record]; }
  bool has_bad() const noexcept { return !bad_.empty(); }
  // Returns whether a record has the path of a file in place of its bytes. REQUIRES: !is_bad(at.record).
  bool is_file(const ArrowRow& at) const;
  bool may_have_files() const noexcept { return !cells_.files.empty(); }
  // REQUIRES: is_file(at).
  std::span<const std::byte> path(const ArrowRow& at) const { return cells_.files[at.batch].bytes(at.row); }
  // REQUIRES: !is_bad(at.record) and !is_file(at).
  std::span<const std::byte> value(const ArrowRow& at) const;
  // Returns all values if they are equal slices back to back.
  std::optional<FieldColumn> column() const;

 private:
  enum class Form {
    kSlices,  // of the table's numbers
    kBytes,   // of the table's values of any length
    kOwned,   // of owned_
  };
  struct Place {
    std::size_t offset = 0, size = 0;
  };

  void look_at_bytes();
  void read_numbers(const ArrowOptions& options);
  void read_shape(const ArrowType& type);
  void read_vector(const ArrowOptions& options);
  void read_text(const ArrowOptions& options);
  void read_classes(const ArrowOptions& options, const std::vector<std::string>& names);
  // Calls body(ArrowRow) for each record that is not bad, and marks it as bad if a value is null or body throws
  // Error(kDataCorrupt).
  template <typename Body>
  void for_each_good(const Body& body);
  // Fills owned_ with what append(ArrowRow) appends for each record that is not bad.
  template <typename Append>
  void append_each(const Append& append, const ArrowOptions& options);
  void mark_bad(std::uint64_t record);

  std::string name_;  // of the column
  Field field_;
  Form form_ = Form::kOwned;
  ArrowTableCells cells_;
  std::vector<std::byte> owned_;
  std::vector<Place> places_;     // in owned_, by record; empty: all are equally long
  std::size_t record_bytes_ = 0;  // if all are equally long
  std::vector<bool> bad_;         // by record; empty: none is
  std::vector<std::string> classes_;
};

}  // namespace headrace
