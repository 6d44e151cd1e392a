#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/pipeline/sources/archives/zip_directory.h"
#include "headrace/pipeline/sources/arrays/array_formats.h"
#include "headrace/pipeline/sources/arrays/array_source.h"
#include "headrace/pipeline/sources/arrays/npy_header.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/split_names.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMaxResident = std::uint64_t{1} << 30;  // for arrays that can also be read by position
// Behind a URL, and records for which a request each pays: smaller ones are fetched together, in one go.
constexpr std::uint64_t kMaxFetched = std::uint64_t{64} << 20, kMinFetched = std::uint64_t{16} << 10;

// An array by name, before it is known which are wanted.
struct ArrayChoice {
  std::size_t index = 0;  // among the names
  std::string field;      // "image"
};

// A name such as "x_train", split into its part and the rest.
struct Name {
  std::optional<Part> part = {};
  std::string rest;
};

Name parse_name(const std::string& name) {
  Name result;
  for (std::string_view left = name; !left.empty();) {
    const std::string_view word = left.substr(0, left.find_first_of("_-"));
    left.remove_prefix(std::min(word.size() + 1, left.size()));
    if (const std::optional<Part> part = part_called(word); part && !result.part) {
      result.part = part;
    } else {
      result.rest.append(result.rest.empty() ? "" : "_").append(word);
    }
  }
  return result;
}

// Returns the field for the usual words for image and label.
std::string field_name(const std::string& rest) {
  std::string word = rest;
  std::ranges::transform(word, word.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  for (const char* image : {"", "x", "image", "images", "img", "imgs", "data"}) {
    if (word == image) return "image";
  }
  for (const char* label : {"y", "label", "labels", "target", "targets"}) {
    if (word == label) return "label";
  }
  return rest;
}

// Returns the arrays of the split. If no name states a split, all are train.
std::vector<ArrayChoice> choose(const std::vector<std::string>& names, Split split, const std::string& source) {
  std::vector<Name> parsed;
  for (const std::string& name : names) parsed.push_back(parse_name(name));
  const auto has = [&](std::optional<Part> part) {
    return std::ranges::find(parsed, part, &Name::part) != parsed.end();
  };
  std::optional<Part> wanted;
  if (has(Part::kTrain) || has(Part::kTest) || has(Part::kValidation)) {
    wanted = split == Split::kTrain ? Part::kTrain : has(Part::kTest) ? Part::kTest : Part::kValidation;
  }
  if (!wanted ? split == Split::kTest : !has(wanted)) {
    throw ConfigError(fmt::format("{}: has no arrays of the {} split; it has {}", source,
                                  split == Split::kTrain ? "train" : "test", fmt::join(names, ", ")),
                      "name them x_train and y_train, x_test and y_test");
  }
  std::vector<ArrayChoice> choices;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (parsed[i].part != wanted) continue;
    std::string field = field_name(parsed[i].rest);
    const auto taken = [&](const std::string& one) {
      return std::ranges::find(choices, one, &ArrayChoice::field) != choices.end();
    };
    if (taken(field)) field = names[i];
    if (taken(field)) throw ConfigError(source + ": has two arrays named " + names[i]);
    choices.push_back({.index = i, .field = std::move(field)});
  }
  std::ranges::stable_sort(choices, {}, [](const ArrayChoice& choice) {
    return choice.field == "image" ? 0 : choice.field == "label" ? 1 : 2;  // as in other sources
  });
  if (choices.size() > kMaxFields) {
    throw ConfigError(fmt::format("{}: has {} arrays ({}); a record has at most {} fields", source, choices.size(),
                                  fmt::join(names, ", "), kMaxFields),
                      "save those that are needed");
  }
  return choices;
}

// Labels are i64 scalars, also if stored as a column; an image of two axes has one channel.
Field make_field(const std::string& name, const NpyHeader& header) {
  const Shape shape = header.record_shape();
  const bool is_scalar = shape.rank() == 0 || (shape.rank() == 1 && shape[0] == 1);
  if (name == "label" && is_scalar && header.element.kind != FileElement::Kind::kFloat) {
    return {.name = name, .dtype = DType::kI64, .shape = {}};
  }
  const bool is_grey = name == "image" && shape.rank() == 2;
  return {.name = name,
          .dtype = tensor_type_of(header.element),
          .shape = is_grey ? Shape{shape[0], shape[1], 1} : shape};
}

// Converts from Fortran's order, in which the first axis is the fastest, to C's.
std::vector<std::byte> in_c_order(const NpyHeader& header, std::span<const std::byte> data) {
  const std::size_t rank = header.extents.size(), one = header.element.bytes;
  std::vector<std::size_t> stride(rank), at(rank);
  std::size_t step = one;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    stride[axis] = step;
    step *= static_cast<std::size_t>(header.extents[axis]);
  }
  std::vector<std::byte> ordered(data.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < ordered.size(); to += one) {
    std::memcpy(ordered.data() + to, data.data() + from, one);
    for (std::size_t axis = rank; axis-- > 0;) {  // the next position, the last axis the fastest
      from += stride[axis];
      if (++at[axis] < static_cast<std::size_t>(header.extents[axis])) break;
      from -= stride[axis] * at[axis];
      at[axis] = 0;
    }
  }
  return ordered;
}

// Returns one member of all elements of a structured array.
std::vector<std::byte> member_of(const NpyHeader& header, std::span<const std::byte> data) {
  const auto one = static_cast<std::size_t>(header.record_bytes()),
             step = static_cast<std::size_t>(header.row_bytes);
  std::vector<std::byte> all(one * static_cast<std::size_t>(header.records()));
  const std::byte* from = data.data() + header.row_offset;
  for (std::size_t to = 0; to < all.size(); to += one, from += step) std::memcpy(all.data() + to, from, one);
  return all;
}

// An array of a file, or a member of a structured one, and its field.
struct ArrayPartOfFile {
  NpyHeader header;
  Field field;
};

// Returns the fields of an array: itself, or the members of a structured one, of which image and label come first.
std::vector<ArrayPartOfFile> fields_in(const NpyHeader& header, const std::string& name) {
  if (header.members.empty()) return {{.header = header, .field = make_field(name, header)}};
  std::vector<ArrayPartOfFile> parts;
  for (const NpyMember& member : header.members) {
    std::string field = field_name(member.name);
    const auto taken = [&](const ArrayPartOfFile& part) { return part.field.name == field; };
    if (std::ranges::any_of(parts, taken)) field = member.name;
    NpyHeader of_member = header.of_member(member);
    Field made = make_field(field, of_member);
    parts.push_back({.header = std::move(of_member), .field = std::move(made)});
  }
  std::ranges::stable_sort(parts, {}, [](const ArrayPartOfFile& part) {
    return part.field.name == "image" ? 0 : part.field.name == "label" ? 1 : 2;
  });
  return parts;
}

Array make_array(const std::string& source, const Field& field, const NpyHeader& header,
                 std::vector<std::byte> data) {
  if (header.row_bytes != 0) data = member_of(header, data);
  if (header.is_fortran) data = in_c_order(header, data);
  Array array{.field = field, .bytes = {}};
  if (is_tensor_type(header.element) && field.dtype == tensor_type_of(header.element)) {
    array.bytes = std::move(data);
    return array;
  }
  array.bytes.resize(data.size() / header.element.bytes * size_of(field.dtype));
  try {
    if (field.dtype == DType::kI64) {
      convert_to_i64(header.element, data, array.bytes);
    } else {
      convert_elements(header.element, data, array.bytes);
    }
  } catch (const Error& error) {
    throw DataError(error.code(), error.message(), {.source = source}, error.hint());
  }
  return array;
}

void check_records(const std::string& source, const std::string& name, std::uint64_t records,
                   const std::string& first, std::uint64_t records_of_first) {
  if (records == records_of_first) return;
  throw DataError(ErrorCode::kDataCorrupt,
                  fmt::format("its arrays have different numbers of records: {} has {}, {} has {}", first,
                              records_of_first, name, records),
                  {.source = source}, "the first axis of every array counts the records");
}

[[noreturn]] void fail_too_large(const std::string& source, std::uint64_t limit, const char* hint) {
  throw DataError(ErrorCode::kOutOfMemory, fmt::format("its arrays do not fit into {} MiB of memory", limit >> 20),
                  {.source = source}, hint);
}

// Refuses two fields of one name, which members of several structured arrays may have, and too many.
template <typename Column, typename NameOf>
void want_own_names(const std::string& source, const std::vector<Column>& columns, const NameOf& name_of_column) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (name_of_column(columns[i]) != name_of_column(columns[j])) continue;
      throw ConfigError(source + ": has two fields named " + name_of_column(columns[i]), "rename one of them");
    }
  }
  if (columns.size() <= kMaxFields) return;
  throw ConfigError(fmt::format("{}: has {} fields; a record has at most {}", source, columns.size(), kMaxFields),
                    "save those that are needed");
}

// The arrays of an archive are unpacked into memory.
SourcePtr open_npz(const std::filesystem::path& path, const NumpyOptions& options) {
  const std::string source = path.string();
  const File file = File::open(path);
  const ReadAt read_at = [&](std::uint64_t offset, std::span<std::byte> into) { file.read_exact(offset, into); };
  std::vector<ZipFile> files = list_zip(source, file.size(), read_at);
  std::erase_if(files, [](const ZipFile& one) { return !one.path.ends_with(".npy"); });
  std::vector<std::string> names;
  for (const ZipFile& one : files) names.push_back(one.path.substr(0, one.path.size() - 4));
  const std::vector<ArrayChoice> choices = choose(names, options.split, source);
  std::vector<Array> arrays;
  std::uint64_t records = 0, used = 0;
  for (const ArrayChoice& choice : choices) {
    const ZipFile& one = files[choice.index];
    const std::string name = source + "/" + one.path;
    if (one.unreadable != nullptr) {
      throw DataError(ErrorCode::kUnsupported, one.unreadable, {.source = name}, "save it with numpy.savez");
    }
    if (one.place.size > options.memory_limit - used) {
      fail_too_large(source, options.memory_limit, "save the arrays as .npy files, which are read by position");
    }
    used += one.place.size;
    std::vector<std::byte> bytes(static_cast<std::size_t>(one.place.size));
    read_stored(one.place, source, read_at, bytes);
    const NpyHeader header =
        parse_npy_header(name, std::span(bytes).first(std::min(bytes.size(), kMaxNpyHeader)), bytes.size());
    if (arrays.empty()) records = header.records();
    check_records(source, one.path, header.records(), files[choices.front().index].path, records);
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.data_offset));
    for (const ArrayPartOfFile& part : fields_in(header, choice.field)) {
      arrays.push_back(
          make_array(name, part.field, part.header, header.members.empty() ? std::exchange(bytes, {}) : bytes));
    }
  }
  want_own_names(source, arrays, [](const Array& array) { return array.field.name; });
  return std::make_shared<ArraySource>(source, records, std::move(arrays));
}

// Arrays in .npy files as the fields of records, each record read by position: for arrays too large for memory.
// Not memory-mapped: a file that shrinks while it is read is a record's error here, but SIGBUS with a mapping.

struct NpyColumn {
  File file;
  NpyHeader header;  // in C order
  Field field;       // i64 from any integers, else tensor_type_of() the elements
};

class NpyRows final : public Source {
 public:
  // REQUIRES: all columns have equally many records.
  NpyRows(std::string name, std::vector<NpyColumn> columns);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::string describe(std::uint64_t index) const override;  // "name[17]"

 private:
  std::vector<NpyColumn> columns_;
  SourceInfo info_;
};

std::size_t field_bytes(const Field& field) {
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

// Reads one record of one column.
void read_npy_row(const NpyColumn& column, std::uint64_t index, std::span<std::byte> into) {
  const NpyHeader& header = column.header;
  const std::uint64_t bytes = header.record_bytes(), offset = header.record_offset(index);
  const bool as_it_is = is_tensor_type(header.element) && column.field.dtype == tensor_type_of(header.element);
  if (as_it_is) return column.file.read_exact(offset, into);
  BorrowedBytes raw;
  (*raw).resize(static_cast<std::size_t>(bytes));
  column.file.read_exact(offset, *raw);
  if (column.field.dtype == DType::kI64) {
    convert_to_i64(header.element, *raw, into);
  } else {
    convert_elements(header.element, *raw, into);
  }
}

NpyRows::NpyRows(std::string name, std::vector<NpyColumn> columns) : columns_(std::move(columns)) {
  Fingerprint fingerprint("npy rows 1"), revision("");
  info_.name = std::move(name);
  info_.records = columns_.front().header.records();
  for (const NpyColumn& column : columns_) {
    info_.fields.push_back(column.field);
    fingerprint.add(column.field).add(column.file.size());
    revision.add(column.file.modified_ns());
  }
  info_.fingerprint = fingerprint.value();
  info_.revision = revision.value();
}

RecordView NpyRows::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  std::array<std::size_t, kMaxFields> offset{};
  std::size_t end = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    offset[i] = end;
    end += (field_bytes(columns_[i].field) + 15) / 16 * 16;
  }
  if (scratch.size() < end) scratch.resize(end);
  RecordView view;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::span<std::byte> into = std::span(scratch).subspan(offset[i], field_bytes(columns_[i].field));
    try {
      read_npy_row(columns_[i], index, into);
    } catch (const Error& error) {
      throw DataError(error.code(), "cannot read " + columns_[i].field.name + " of " + describe(index),
                      {.source = info_.name, .record = index}, error.message());
    }
    view.fields[i] = into;
  }
  return view;
}

void NpyRows::will_read(std::span<const std::uint64_t> records) const {
  std::vector<ByteExtent> extents;
  for (const NpyColumn& column : columns_) {
    extents.clear();
    for (const std::uint64_t record : records)
      extents.push_back({.offset = column.header.record_offset(record), .size = column.header.record_bytes()});
    column.file.will_read(extents);
  }
}

std::string NpyRows::describe(std::uint64_t index) const { return info_.name + "[" + std::to_string(index) + "]"; }

// Adds the columns of a file: one, or one for each member of a structured array.
void open_columns(const std::filesystem::path& path, const std::string& field, std::vector<NpyColumn>& columns) {
  File file = File::open(path);
  std::vector<std::byte> start(kMaxNpyHeader);
  start.resize(file.read_some(0, start));
  const NpyHeader header = parse_npy_header(path.string(), start, file.size());
  for (ArrayPartOfFile& part : fields_in(header, field)) {
    columns.push_back(
        {.file = File::open(path), .header = std::move(part.header), .field = std::move(part.field)});
  }
}

SourcePtr load_columns(const std::string& source, const std::vector<NpyColumn>& columns) {
  std::vector<Array> arrays;
  for (const NpyColumn& column : columns) {
    std::vector<std::byte> data(static_cast<std::size_t>(column.file.size() - column.header.data_offset));
    column.file.read_exact(column.header.data_offset, data);
    arrays.push_back(make_array(column.file.path().string(), column.field, column.header, std::move(data)));
  }
  return std::make_shared<ArraySource>(source, columns.front().header.records(), std::move(arrays));
}

SourcePtr open_npy(const std::filesystem::path& path, const std::vector<std::filesystem::path>& files,
                   const NumpyOptions& options) {
  std::vector<std::string> names;
  for (const std::filesystem::path& file : files) names.push_back(file.stem().string());
  const bool is_one_file = files.size() == 1 && files.front() == path;
  const std::vector<ArrayChoice> choices =
      is_one_file ? std::vector{ArrayChoice{.index = 0, .field = field_name(parse_name(names.front()).rest)}}
                  : choose(names, options.split, path.string());
  std::vector<NpyColumn> columns;
  std::uint64_t bytes = 0;
  bool is_fortran = false;
  for (const ArrayChoice& choice : choices) {
    open_columns(files[choice.index], choice.field, columns);
    check_records(path.string(), names[choice.index], columns.back().header.records(),
                  names[choices.front().index], columns.front().header.records());
    bytes += columns.back().file.size();
    is_fortran = is_fortran || columns.back().header.is_fortran;
  }
  want_own_names(path.string(), columns, [](const NpyColumn& column) { return column.field.name; });
  const bool one_by_one =
      is_url(path) && bytes / std::max<std::uint64_t>(1, columns.front().header.records()) >= kMinFetched;
  const std::uint64_t resident = one_by_one ? kMaxFetched : kMaxResident;
  if (bytes <= std::min(options.memory_limit, resident)) return load_columns(path.string(), columns);
  if (!is_fortran) return std::make_shared<NpyRows>(path.string(), std::move(columns));
  if (bytes <= options.memory_limit) return load_columns(path.string(), columns);
  fail_too_large(path.string(), options.memory_limit,
                 "its order is Fortran's, in which a record is no slice: save numpy.ascontiguousarray(array)");
}

SourcePtr open_numpy_arrays(const std::filesystem::path& path, const NumpyOptions& options) {
  if (path_kind(path) != PathKind::kDirectory) {
    return is_npz(path) ? open_npz(path, options) : open_npy(path, {path}, options);
  }
  std::vector<std::filesystem::path> files;
  for (const DirectoryEntry& entry : list_directory(path)) {
    const std::string name = entry.path.filename().string();
    if (!entry.is_directory && name.ends_with(".npy") && !name.starts_with('.')) files.push_back(entry.path);
  }
  if (files.empty()) throw DataError(ErrorCode::kNotFound, "has no .npy file", {.source = path.string()});
  return open_npy(path, files, options);
}

}  // namespace

bool is_npy(const std::filesystem::path& file) { return starts_like_npy(first_bytes(file)); }

bool is_npz(const std::filesystem::path& file) {
  if (!starts_like_zip(first_bytes(file))) return false;
  const File opened = File::open(file);
  const std::vector<ZipFile> files =
      list_zip(file.string(), opened.size(),
               [&](std::uint64_t offset, std::span<std::byte> into) { opened.read_exact(offset, into); });
  const auto is_folder = [](const ZipFile& one) { return one.path.ends_with('/'); };
  const auto first = std::ranges::find_if_not(files, is_folder);
  return first != files.end() && first->path.ends_with(".npy");
}

SourcePtr numpy_arrays(const std::filesystem::path& path, NumpyOptions options) {
  return opened_by(NumpyArraysCall{{path, options}}, open_numpy_arrays(path, options));
}

}  // namespace headrace
