#include "headrace/pipeline/sources/records/tf_example.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/columns.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {
namespace {

// The fields of one serialized protocol buffer message, one after the other, without copying them. TFRecord needs
// four tiny message types and the bytes of an image in place; a generated parser would copy the image out and
// bring a compiler and a library into the build.
class WireReader {
 public:
  enum class Kind { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  // Advances to the next field; false at the end of the message. Throws Error(kDataCorrupt) if a length or a
  // number reaches beyond the message, or if a field's kind is unknown.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = take_varint();
    number_ = tag >> 3;
    kind_ = static_cast<Kind>(tag & 7);
    if (number_ == 0) fail();
    switch (kind_) {
      case Kind::kVarint: varint_ = take_varint(); return true;
      case Kind::kFixed64: bytes_ = take(8); return true;
      case Kind::kFixed32: bytes_ = take(4); return true;
      case Kind::kBytes: bytes_ = take(take_varint()); return true;
    }
    fail();
  }

  bool is(std::uint64_t number, Kind kind) const noexcept { return number_ == number && kind_ == kind; }
  std::uint64_t varint() const noexcept { return varint_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

  bool at_end() const noexcept { return rest_.empty(); }
  // Returns the next number of a packed list. REQUIRES: the message consists only of that list.
  std::uint64_t take_varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail();
      const auto byte = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kDataCorrupt, "its bytes are no protocol buffer message");
  }
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) fail();
    const std::span<const std::byte> taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  std::span<const std::byte> rest_;
  std::uint64_t number_ = 0;
  Kind kind_ = Kind::kVarint;
  std::uint64_t varint_ = 0;
  std::span<const std::byte> bytes_;
};

using FeatureKind = WireReader::Kind;

// message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
// message BytesList { repeated bytes value = 1; }   message FloatList { repeated float value = 1 [packed = true];
// } message Int64List { repeated int64 value = 1 [packed = true]; }
enum FeatureList : std::uint64_t { kBytesList = 1, kFloatList = 2, kIntegerList = 3 };

// Calls take(values) with a reader at each value, or packed list of values, of the feature's list of this kind.
template <typename Take>
void visit_list(std::span<const std::byte> feature, FeatureList list, const Take& take) {
  WireReader kinds(feature);
  while (kinds.next()) {
    if (!kinds.is(list, FeatureKind::kBytes)) continue;
    WireReader values(kinds.bytes());
    while (values.next()) take(values);
  }
}

template <typename Take>
void visit_bytes(std::span<const std::byte> feature, const Take& take) {
  visit_list(feature, kBytesList, [&](const WireReader& values) {
    if (values.is(1, FeatureKind::kBytes)) take(values.bytes());
  });
}

template <typename Take>
void visit_integers(std::span<const std::byte> feature, const Take& take) {
  visit_list(feature, kIntegerList, [&](const WireReader& values) {
    if (values.is(1, FeatureKind::kVarint)) take(static_cast<std::int64_t>(values.varint()));
    if (!values.is(1, FeatureKind::kBytes)) return;
    for (WireReader packed(values.bytes()); !packed.at_end();) {
      take(static_cast<std::int64_t>(packed.take_varint()));
    }
  });
}

template <typename Take>
void visit_floats(std::span<const std::byte> feature, const Take& take) {
  const auto take_one = [&](std::span<const std::byte> bytes) {
    take(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(bytes, 0, sizeof(float)))));
  };
  visit_list(feature, kFloatList, [&](const WireReader& values) {
    if (values.is(1, FeatureKind::kFixed32)) take_one(values.bytes());
    if (!values.is(1, FeatureKind::kBytes)) return;
    std::span<const std::byte> packed = values.bytes();
    if (packed.size() % sizeof(float) != 0) {
      throw Error(ErrorCode::kDataCorrupt, "a list of floats whose bytes are no whole number of them");
    }
    for (; !packed.empty(); packed = packed.subspan(sizeof(float))) take_one(packed);
  });
}

// The contents of a feature.
struct FeatureContent {
  std::int64_t bytes = 0, floats = 0, integers = 0;  // how many
  bool image = false;                                // the bytes are one JPEG or PNG file

  std::string describe() const {
    if (image) return "an image";
    if (bytes > 0) return bytes == 1 ? "bytes" : fmt::format("{} of bytes", bytes);
    if (floats > 0) return count_of(static_cast<std::uint64_t>(floats), "float");
    return integers > 0 ? count_of(static_cast<std::uint64_t>(integers), "integer") : "nothing";
  }
};

FeatureContent content_of(std::span<const std::byte> feature) {
  FeatureContent content;
  std::span<const std::byte> last;
  visit_bytes(feature, [&](std::span<const std::byte> value) {
    ++content.bytes;
    last = value;
  });
  visit_floats(feature, [&](float) { ++content.floats; });
  visit_integers(feature, [&](std::int64_t) { ++content.integers; });
  content.image = content.bytes == 1 && begins_as_image(last);
  return content;
}

// Returns the only value of the feature; `what` it is, in plural.
std::span<const std::byte> bytes_in(std::span<const std::byte> feature, const std::string& key, const char* what) {
  std::span<const std::byte> bytes;
  std::size_t count = 0;
  visit_bytes(feature, [&](std::span<const std::byte> value) {
    ++count;
    bytes = value;
  });
  if (count == 1) return bytes;
  throw Error(ErrorCode::kDataCorrupt, count == 0
                                           ? fmt::format("feature '{}' holds no bytes", key)
                                           : fmt::format("feature '{}' holds {} {}, not one", key, count, what));
}

std::size_t tf_value_bytes(const Field& field) {
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

// Writes values one after another; also counts those for which there is no room.
template <typename Value>
class NumberWriter {
 public:
  explicit NumberWriter(std::span<std::byte> into) : into_(into) {}

  void add(Value value) noexcept {
    const std::size_t at = count_++ * sizeof value;
    if (at + sizeof value <= into_.size()) std::memcpy(into_.data() + at, &value, sizeof value);
  }
  std::size_t count() const noexcept { return count_; }

 private:
  std::span<std::byte> into_;
  std::size_t count_ = 0;
};

// Writes f32 from floats, or from integers if there are none.
std::size_t write_values(std::span<const std::byte> feature, DType dtype, std::span<std::byte> into) {
  if (dtype == DType::kI64) {
    NumberWriter<std::int64_t> integers(into);
    visit_integers(feature, [&](std::int64_t value) { integers.add(value); });
    return integers.count();
  }
  NumberWriter<float> floats(into);
  visit_floats(feature, [&](float value) { floats.add(value); });
  if (floats.count() == 0)
    visit_integers(feature, [&](std::int64_t value) { floats.add(static_cast<float>(value)); });
  return floats.count();
}

void write_numbers(std::span<const std::byte> feature, const std::string& key, const Field& field,
                   std::span<std::byte> into) {
  const std::size_t count = write_values(feature, field.dtype, into);
  const auto wanted = static_cast<std::size_t>(field.shape.elements());
  if (count == wanted) return;
  const char* const number = field.dtype == DType::kI64 ? "integer" : "number";
  if (count == 0) throw Error(ErrorCode::kDataCorrupt, fmt::format("feature '{}' holds no {}", key, number));
  if (wanted == 1 && field.name == "label") {
    throw Error(ErrorCode::kDataCorrupt, fmt::format("feature '{}' holds {} labels, not one", key, count));
  }
  throw Error(ErrorCode::kDataCorrupt, fmt::format("feature '{}' holds {} where the first record has {}", key,
                                                   count_of(count, number), wanted));
}

// Looks for a few keys among the features; of a duplicate key the last one counts.
class Wanted {
 public:
  Wanted() = default;
  explicit Wanted(const std::vector<std::string>& keys) : keys_(&keys) {}

  void look_at(std::string_view key, std::span<const std::byte> feature) {
    const auto rank = static_cast<std::size_t>(std::ranges::find(*keys_, key) - keys_->begin());
    if (rank < keys_->size() && rank <= rank_) {
      rank_ = rank;
      feature_ = feature;
    }
  }
  bool found() const noexcept { return rank_ < kNone; }
  const std::string& key() const { return (*keys_)[rank_]; }
  std::span<const std::byte> feature() const noexcept { return feature_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  const std::vector<std::string>* keys_ = nullptr;
  std::size_t rank_ = kNone;
  std::span<const std::byte> feature_;
};

// message Example { Features features = 1; }   message Features { map<string, Feature> feature = 1; }
template <typename Visit>
void visit_features(std::span<const std::byte> payload, const Visit& visit) {
  WireReader example(payload);
  while (example.next()) {
    if (!example.is(1, FeatureKind::kBytes)) continue;
    WireReader features(example.bytes());
    while (features.next()) {
      if (!features.is(1, FeatureKind::kBytes)) continue;
      std::string_view key;
      std::span<const std::byte> feature;
      WireReader entry(features.bytes());
      while (entry.next()) {
        if (entry.is(1, FeatureKind::kBytes)) key = entry.text();
        if (entry.is(2, FeatureKind::kBytes)) feature = entry.bytes();
      }
      visit(key, feature);
    }
  }
}

std::string names_in(std::span<const std::byte> payload) {
  std::vector<std::string> there;
  visit_features(payload, [&](std::string_view key, auto) {
    if (there.size() < 8) there.emplace_back(key.substr(0, 64));
  });
  return there.empty() ? "nothing" : fmt::format("{}", fmt::join(there, ", "));
}

std::string how_to_name_keys() {
  return joined({advice("say which feature is the image: {}", named("ColumnOptions::image_column")),
                 advice("which is the label: {}", named("ColumnOptions::label_column"))},
                "; ");
}

[[noreturn]] void fail_without(const TfField& field, std::span<const std::byte> payload) {
  throw Error(ErrorCode::kDataCorrupt,
              fmt::format("the example has no {} under {}; it has {}", field.field.name,
                          fmt::join(field.keys, " or "), names_in(payload)),
              how_to_name_keys());
}

Shape shape_of(std::int64_t count) { return count == 1 ? Shape{} : Shape{count}; }

// The features of an example by name; of a duplicate key the last one counts.
using FeatureContents = std::map<std::string, FeatureContent, std::less<>>;

FeatureContents contents_of(std::span<const std::byte> example) {
  FeatureContents contents;
  visit_features(example, [&](std::string_view key, std::span<const std::byte> feature) {
    contents.insert_or_assign(std::string(key), content_of(feature));
  });
  return contents;
}

std::vector<NamedColumn> feature_columns(const FeatureContents& contents) {
  std::vector<NamedColumn> columns;
  for (const auto& [name, content] : contents) {
    NamedColumn& column = columns.emplace_back(NamedColumn{.name = name, .holds = content.describe()});
    if (content.image || content.floats > 0 || content.integers > 0) column.types.push_back(ColumnType::kNumber);
    if (content.image) column.types.push_back(ColumnType::kMask);
    if (content.bytes == 1) column.types.push_back(ColumnType::kText);
    if (column.types.empty()) column.hint = "a feature is integers, floats, one encoded image or one text";
  }
  return columns;
}

Field further_field(const std::string& name, ColumnType type, const FeatureContent& content) {
  if (type == ColumnType::kText) return text_field(name);
  if (content.image) return image_field(name, type == ColumnType::kMask);
  if (content.floats > 0) return {.name = name, .dtype = DType::kF32, .shape = shape_of(content.floats)};
  return {.name = name, .dtype = DType::kI64, .shape = shape_of(content.integers)};
}

// Returns the field of a label in the first example.
Field label_field(const std::string& key, const FeatureContent& content, LabelType type,
                  const std::string& source) {
  Field label = labelled_image_fields().back();
  if (type == LabelType::kNumber) {
    label.dtype = DType::kF32;
    label.shape = shape_of(std::max<std::int64_t>(1, content.floats));
  } else if (content.floats > 0) {
    throw ConfigError(
        fmt::format("{}: the label '{}' holds {}, and classes are integers", source, key, content.describe()),
        advice("for values to predict, as float32, say {}", named("ColumnOptions::label_type", "number")));
  }
  return label;
}

}  // namespace

bool lies_in_payload(const Field& field) noexcept {
  return field.encoding == Encoding::kImage || field.shape.is_dynamic();
}

std::vector<TfField> tf_fields(const TfRecordOptions& options) {
  Fields fields = labelled_image_fields();
  if (options.label_type == LabelType::kNumber) fields.back().dtype = DType::kF32;
  return {{.field = fields.front(), .keys = options.image_keys},
          {.field = fields.back(), .keys = options.label_keys}};
}

TfFields tf_fields(const TfRecordOptions& options, std::span<const std::byte> example, const std::string& source) {
  const FeatureContents contents = contents_of(example);
  ColumnChooser chooser(source, {.column = "feature", .where = " in its first record"}, feature_columns(contents));
  TfFields found{.fields = tf_fields(options), .columns = {}};
  for (TfField& one : found.fields) {
    const auto key =
        std::ranges::find_if(one.keys, [&](const std::string& name) { return contents.contains(name); });
    const bool is_there = key != one.keys.end();
    chooser.add(one.field.name, is_there ? std::vector{*chooser.find(*key)} : std::vector<std::size_t>());
    if (!is_there || one.field.name != "label") continue;
    one.field = label_field(*key, contents.find(*key)->second, options.label_type, source);
  }
  for (const std::string& text : options.feature_keys) {
    const ChosenField chosen = chooser.take(text);
    const std::string& key = chooser.columns()[chosen.columns.front()].name;
    found.fields.push_back(
        {.field = further_field(chosen.field, chosen.type, contents.find(key)->second), .keys = {key}});
  }
  found.columns = chooser.listed();
  return found;
}

std::size_t number_bytes(const std::vector<TfField>& fields) {
  std::size_t bytes = 0;
  for (const auto& [field, keys] : fields) {
    if (!lies_in_payload(field)) bytes += (tf_value_bytes(field) + 7) / 8 * 8;
  }
  return bytes;
}

RecordView parse_tf_example(std::span<const std::byte> payload, const std::vector<TfField>& fields,
                            std::span<std::byte> numbers) {
  PerField<Wanted> wanted;
  for (std::size_t i = 0; i < fields.size(); ++i) wanted[i] = Wanted(fields[i].keys);
  visit_features(payload, [&](std::string_view key, std::span<const std::byte> feature) {
    for (std::size_t i = 0; i < fields.size(); ++i) wanted[i].look_at(key, feature);
  });
  RecordView view;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!wanted[i].found()) fail_without(fields[i], payload);
    const Field& field = fields[i].field;
    if (lies_in_payload(field)) {
      const char* const what = field.encoding == Encoding::kImage ? "images" : "texts";
      view.fields[i] = bytes_in(wanted[i].feature(), wanted[i].key(), what);
      continue;
    }
    const std::size_t bytes = tf_value_bytes(field);
    write_numbers(wanted[i].feature(), wanted[i].key(), field, numbers.first(bytes));
    view.fields[i] = numbers.first(bytes);
    numbers = numbers.subspan((bytes + 7) / 8 * 8);
  }
  return view;
}

}  // namespace headrace
