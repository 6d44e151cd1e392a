// Members of a sample as fields of its record: images, texts, NumPy arrays and numbers, in text or in JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources/cell_classes.h"
#include "headrace/pipeline/sources/columns.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/members/member_name.h"
#include "headrace/pipeline/sources/members/record_parts.h"

namespace headrace {

// The members of one sample, numbered as MemberFields::extensions(). One thread at a time.
class SampleMembers {
 public:
  SampleMembers() = default;
  virtual ~SampleMembers() = default;
  SampleMembers(const SampleMembers&) = delete;
  SampleMembers& operator=(const SampleMembers&) = delete;

  // Returns its size; std::nullopt if the sample has no such member.
  virtual std::optional<std::uint64_t> size(std::size_t member) const = 0;
  // Returns its bytes if the source keeps them.
  virtual std::span<const std::byte> kept(std::size_t member) const = 0;
  // Returns the path that a missing one would have; empty: its extension says it.
  virtual std::string path(std::size_t /*member*/) const { return {}; }
  // Reads all of it. Throws DataError. REQUIRES: it is there, and into.size() is its size.
  virtual void read(std::size_t member, std::span<std::byte> into) const = 0;
};

// The number of samples from which the fields are learned.
inline constexpr std::size_t kSamplesLearnedFrom = 256;

// A member as it was chosen.
struct MemberChoice {
  std::string name;  // as given: "json.box"
  MemberName member;
  ColumnType type = ColumnType::kNumber;
};

class MemberFields {
 public:
  MemberFields() = default;
  // Takes the members that ColumnOptions::columns name, as ColumnChooser::take(). Without a type an image is an
  // image and "txt" is text.
  MemberFields(const std::vector<std::string>& more, std::string source);

  bool empty() const noexcept { return columns_.empty(); }
  // Returns the members to read, each once, in the order in which they were named first.
  const std::vector<std::string>& extensions() const noexcept { return extensions_; }
  // Returns whether all fields are the bytes of a member.
  bool are_bytes() const noexcept;

  // Returns how many of the samples are needed to learn from: the first ones, or all, for classes to be numbered.
  std::uint64_t samples_to_learn_from(std::uint64_t count) const noexcept;
  // Learns the types and shapes of numbers from the first samples, and the names of classes from each. Skips a
  // sample that cannot be read.
  void learn(const SampleMembers& sample);
  // Ends learning. Throws ConfigError if no sample has a member, or if it cannot be a field; `there` are the
  // members that samples have.
  void settle(const std::vector<std::string>& there);

  // Adds the names of classes, whose numbers depend on all samples. REQUIRES: settled.
  void add_classes_to(Fingerprint& fingerprint) const;
  // Appends the fields. REQUIRES: settled.
  void add_to(Fields& fields) const;
  // Returns the field that a member becomes; empty if none, "caption, box" if several.
  std::string field_of(const std::string& extension) const;
  // Reads the fields of a sample, the first of which has the number `first`. Throws DataError, or
  // Error(kDataCorrupt) naming the member, if it is missing, of another type or another shape.
  void read(const SampleMembers& sample, std::size_t first, RecordParts& parts) const;

 private:
  enum class Form { kBytes, kText, kNumbers, kJson, kJsonText, kArray, kClass };

  // A field, and what is known of it.
  struct Column {
    MemberChoice choice;
    Form form = Form::kBytes;
    std::size_t member = 0;  // into extensions_
    Field field = {};
    bool learned = false, varies = false, empty = false;
    CellClasses classes = {};  // of kClass
    std::string failure = {};  // of the first sample that had the member and could not be read
  };

  static Form form_of(const MemberChoice& choice);
  void learn_column(Column& column, std::span<const std::byte> member) const;
  void learn_shape(Column& column, DType type, std::span<const std::int64_t> extents) const;
  void read_column(const Column& column, std::span<const std::byte> member, std::size_t number,
                   RecordParts& parts) const;
  void read_member(const SampleMembers& sample, std::size_t member, std::size_t first, RecordParts& parts) const;
  static void check_shape(const Column& column, std::span<const std::int64_t> extents);

  std::string source_;
  std::uint64_t learned_from_ = 0;
  std::vector<Column> columns_;
  std::vector<std::string> extensions_;
};

}  // namespace headrace
