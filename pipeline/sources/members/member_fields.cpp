#include "headrace/pipeline/sources/members/member_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/arrays/npy_header.h"
#include "headrace/pipeline/sources/borrowed_bytes.h"
#include "headrace/pipeline/sources/members/member_numbers.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {
namespace {

[[noreturn]] void fail_member(const std::string& name, const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorCode::kDataCorrupt, fmt::format("member '{}' {}", name, what), hint);
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns a value of the JSON in a member; its keys lead there.
const nlohmann::json& value_in(const nlohmann::json& json, const MemberChoice& choice) {
  if (json.is_discarded()) fail_member(choice.member.extension, "is no JSON");
  const nlohmann::json* at = &json;
  for (const std::string& key : choice.member.keys) {
    if (!at->is_object() || !at->contains(key)) {
      fail_member(choice.member.extension, fmt::format("has no value '{}'", fmt::join(choice.member.keys, ".")));
    }
    at = &at->at(key);
  }
  return *at;
}

nlohmann::json parse_member(std::span<const std::byte> member) { return parse_json_member(as_text(member)); }

// Collects a column's numbers, and names the member where there are none.
void collect(const MemberChoice& choice, bool json, std::span<const std::byte> member, MemberNumbers& numbers) {
  numbers.clear();
  try {
    if (json) {
      const nlohmann::json parsed = parse_member(member);
      numbers.add_json(value_in(parsed, choice));
    } else {
      numbers.add_text(as_text(member));
    }
  } catch (const Error& error) {
    if (error.message().starts_with("member ")) throw;
    fail_member(choice.name, error.message(), fmt::format("for text say '{}:text'", choice.name));
  }
}

MemberNumbers& numbers_of_thread() {
  static thread_local MemberNumbers numbers;
  return numbers;
}

NpyHeader array_header(const MemberChoice& choice, std::span<const std::byte> member) {
  NpyHeader header = parse_npy(choice.name, member.first(std::min(member.size(), kMaxNpyHeader)), member.size());
  if (!header.members.empty()) {
    fail_member(choice.name, "is a structured array", "save an array of numbers for each of its fields");
  }
  if (header.is_fortran) {
    fail_member(choice.name, "is in Fortran's order", "save numpy.ascontiguousarray(array)");
  }
  return header;
}

// Returns the extents that a field has of numbers: one number of text is no list.
std::span<const std::int64_t> extents_of(const MemberNumbers& numbers, bool text, bool list) {
  const std::span<const std::int64_t> extents = numbers.extents();
  const bool single = text && !list && numbers.size() == 1;
  return single ? std::span<const std::int64_t>() : extents;
}

// Returns the name of a class: a text without the blanks around it, or a text, number or truth value in JSON.
std::string class_in(const MemberChoice& choice, std::span<const std::byte> member) {
  if (choice.member.keys.empty()) {
    constexpr std::string_view kBlanks = " \t\r\n";
    std::string_view text = as_text(member);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    if (!text.empty()) return std::string(text);
    fail_member(choice.name, "names no class: it is empty");
  }
  const nlohmann::json parsed = parse_member(member);
  const nlohmann::json& value = value_in(parsed, choice);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  fail_member(choice.name, fmt::format("holds a value of type {}, no class", value.type_name()));
}

}  // namespace

MemberFields::MemberFields(const std::vector<std::string>& more, std::string source) : source_(std::move(source)) {
  for (MemberChoice& choice : parse_member_choices(more, source_)) {
    const std::string& extension = choice.member.extension;
    const auto found = std::ranges::find(extensions_, extension);
    Column column{.choice = choice,
                  .form = form_of(choice),
                  .member = static_cast<std::size_t>(found - extensions_.begin())};
    if (found == extensions_.end()) extensions_.push_back(extension);
    column.field.name = choice.field;
    if (column.form == Form::kBytes) {
      const bool mask = choice.type == ColumnType::kMask;
      column.field = mask ? mask_field() : labelled_image_fields().front();
      column.field.name = choice.field;
    }
    if (column.form == Form::kText || column.form == Form::kJsonText) {
      column.field.dtype = DType::kU8;
      column.field.shape = {Shape::kDynamic};
    }
    if (column.form == Form::kClass) column.field.dtype = DType::kI64;
    columns_.push_back(std::move(column));
  }
}

std::uint64_t MemberFields::samples_to_learn_from(std::uint64_t count) const noexcept {
  const bool all = std::ranges::any_of(columns_, [](const Column& one) { return one.form == Form::kClass; });
  return all ? count : std::min<std::uint64_t>(count, kSamplesLearnedFrom);
}

void MemberFields::add_classes_to(Fingerprint& fingerprint) const {
  for (const Column& column : columns_) column.classes.add_to(fingerprint);
}

MemberFields::Form MemberFields::form_of(const MemberChoice& choice) {
  const bool json = !choice.member.keys.empty();
  if (choice.type == ColumnType::kClass) return Form::kClass;
  if (choice.type == ColumnType::kText) return json ? Form::kJsonText : Form::kText;
  if (json) return Form::kJson;
  const std::string& extension = choice.member.extension;
  if (is_image_extension(extension)) return Form::kBytes;
  const bool array = extension == "npy" || extension.ends_with(".npy");
  return array ? Form::kArray : Form::kNumbers;
}

bool MemberFields::are_bytes() const noexcept {
  return std::ranges::all_of(
      columns_, [](const Column& column) { return column.form == Form::kBytes || column.form == Form::kText; });
}

void MemberFields::learn(const SampleMembers& sample) {
  const bool is_first = learned_from_++ < kSamplesLearnedFrom;
  for (Column& column : columns_) {
    if (!is_first && column.form != Form::kClass) continue;
    const std::optional<std::uint64_t> size = sample.size(column.member);
    if (!size) continue;
    if (column.form == Form::kBytes || column.form == Form::kText || column.form == Form::kJsonText) {
      column.learned = true;
      continue;
    }
    try {
      std::span<const std::byte> bytes = sample.kept(column.member);
      BorrowedBytes read;
      if (bytes.data() == nullptr) {
        (*read).resize(static_cast<std::size_t>(*size));
        sample.read(column.member, *read);
        bytes = *read;
      }
      learn_column(column, bytes);
    } catch (const ConfigError&) {
      throw;
    } catch (const Error& error) {
      if (column.failure.empty()) column.failure = error.message();
    }
  }
}

void MemberFields::learn_column(Column& column, std::span<const std::byte> member) const {
  switch (column.form) {
    case Form::kBytes:
    case Form::kText:
    case Form::kJsonText: return;
    case Form::kClass:
      column.classes.add(class_in(column.choice, member));
      column.learned = true;
      return;
    case Form::kArray: {
      const NpyHeader header = array_header(column.choice, member);
      return learn_shape(column, tensor_type_of(header.element), header.extents);
    }
    case Form::kNumbers:
    case Form::kJson: {
      MemberNumbers& numbers = numbers_of_thread();
      const bool text = column.form == Form::kNumbers;
      collect(column.choice, !text, member, numbers);
      const bool list = column.choice.type == ColumnType::kList;
      if (text && !list && numbers.size() == 0) fail_member(column.choice.name, "holds no number");
      return learn_shape(column, numbers.are_integers() ? DType::kI64 : DType::kF32,
                         extents_of(numbers, text, list));
    }
  }
}

void MemberFields::learn_shape(Column& column, DType type, std::span<const std::int64_t> extents) const {
  const bool no_elements = std::ranges::count(extents, 0) > 0;
  if (no_elements && !extents.empty()) column.varies = true;
  const bool first = !column.learned || column.empty;
  if (column.learned && no_elements) return;  // an empty list says nothing of what is in others
  Field& field = column.field;
  if (first) {
    field.dtype = type;
    field.shape = Shape(extents);
    column.empty = no_elements;
    column.learned = true;
    return;
  }
  if (column.form == Form::kArray && type != field.dtype) {
    throw ConfigError(fmt::format("{}: the member '{}' holds {} in one sample and {} in another", source_,
                                  column.choice.name, to_string(field.dtype), to_string(type)),
                      "save the arrays with one type");
  }
  if (type == DType::kF32) field.dtype = type;
  const Shape shape(extents);
  bool same = shape.rank() == field.shape.rank();
  for (int axis = 1; same && axis < shape.rank(); ++axis) same = shape[axis] == field.shape[axis];
  if (!same) {
    throw ConfigError(
        fmt::format("{}: the member '{}' has the shape {} in one sample and {} in another", source_,
                    column.choice.name, field.shape.to_string(), shape.to_string()),
        fmt::format("only the first axis may differ between samples; where lists differ in length, say '{}:list'",
                    column.choice.name));
  }
  if (shape.rank() > 0 && shape[0] != field.shape[0]) column.varies = true;
}

void MemberFields::settle(const std::vector<std::string>& there) {
  for (Column& column : columns_) {
    const std::string& extension = column.choice.member.extension;
    if (!column.learned && !column.failure.empty()) {
      throw ConfigError(
          fmt::format("{}: {}", source_, column.failure),
          "none of its first samples has what is to be taken along; name another member, or its type");
    }
    if (!column.learned) {
      throw ConfigError(
          fmt::format("{}: no member '{}' in its first samples; they have {}{}", source_, extension,
                      there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")),
                      did_you_mean(extension, there)),
          "name some of these with " + named_or("ColumnOptions::columns", "the options for columns"));
    }
    column.classes.settle();
    Shape& shape = column.field.shape;
    const bool list = column.choice.type == ColumnType::kList;
    if (list && shape.rank() == 0) {
      throw ConfigError(fmt::format("{}: the member '{}' holds one number, no list", source_, column.choice.name),
                        "leave out :list");
    }
    if (column.field.encoding != Encoding::kRaw || (!list && !column.varies)) continue;
    std::vector<std::int64_t> extents{Shape::kDynamic};
    for (int axis = 1; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
    shape = Shape(extents);
  }
}

void MemberFields::add_to(Fields& fields) const {
  for (const Column& column : columns_) fields.push_back(column.field);
}

std::string MemberFields::field_of(const std::string& extension) const {
  std::vector<std::string_view> names;
  for (const Column& column : columns_) {
    if (column.choice.member.extension == extension) names.emplace_back(column.field.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void MemberFields::read(const SampleMembers& sample, std::size_t first, RecordParts& parts) const {
  for (std::size_t member = 0; member < extensions_.size(); ++member) read_member(sample, member, first, parts);
}

void MemberFields::read_member(const SampleMembers& sample, std::size_t member, std::size_t first,
                               RecordParts& parts) const {
  const std::optional<std::uint64_t> size = sample.size(member);
  if (!size) {
    const std::string path = sample.path(member);
    throw Error(ErrorCode::kDataCorrupt,
                path.empty() ? fmt::format("there is no member '{}' beside it", extensions_[member])
                             : fmt::format("its file '{}' is missing", path),
                "each sample needs the members that are taken along");
  }
  const auto of_member = [&](const Column& column) { return column.member == member; };
  const bool once = std::ranges::count_if(columns_, of_member) == 1;
  std::span<const std::byte> bytes = sample.kept(member);
  BorrowedBytes read;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (column.member != member) continue;
    const bool whole = column.form == Form::kBytes || column.form == Form::kText;
    if (bytes.data() == nullptr) {
      if (once && whole) return sample.read(member, parts.room(first + i, static_cast<std::size_t>(*size)));
      (*read).resize(static_cast<std::size_t>(*size));
      sample.read(member, *read);
      bytes = *read;
    } else if (whole && (*read).data() != bytes.data()) {
      parts.keep(first + i, bytes);
      continue;
    }
    read_column(column, bytes, first + i, parts);
  }
}

void MemberFields::read_column(const Column& column, std::span<const std::byte> member, std::size_t number,
                               RecordParts& parts) const {
  const auto put = [&](std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, parts.room(number, bytes.size()).begin());
  };
  switch (column.form) {
    case Form::kBytes:
    case Form::kText: return put(member);
    case Form::kJsonText: {
      const nlohmann::json parsed = parse_member(member);
      const nlohmann::json& value = value_in(parsed, column.choice);
      if (!value.is_string()) {
        fail_member(column.choice.name, fmt::format("holds a value of type {}, no text", value.type_name()));
      }
      return put(std::as_bytes(std::span(value.get_ref<const std::string&>())));
    }
    case Form::kClass: {
      const std::string name = class_in(column.choice, member);
      const std::optional<std::int64_t> class_number = column.classes.number_of(name);
      if (class_number) return put(std::as_bytes(std::span(&*class_number, 1)));
      fail_member(column.choice.name,
                  fmt::format("holds '{}', which no sample held when the data were opened", name),
                  "files must not change while they are read");
    }
    case Form::kArray: {
      const NpyHeader header = array_header(column.choice, member);
      check_shape(column, header.extents);
      if (tensor_type_of(header.element) != column.field.dtype) {
        fail_member(column.choice.name,
                    fmt::format("holds {} where the first samples hold {}",
                                to_string(tensor_type_of(header.element)), to_string(column.field.dtype)));
      }
      const std::span<const std::byte> elements = member.subspan(static_cast<std::size_t>(header.data_offset));
      const std::size_t count = elements.size() / header.element.bytes;
      return convert_elements(header.element, elements, parts.room(number, count * size_of(column.field.dtype)));
    }
    case Form::kNumbers:
    case Form::kJson: {
      MemberNumbers& numbers = numbers_of_thread();
      const bool text = column.form == Form::kNumbers;
      collect(column.choice, !text, member, numbers);
      check_shape(column, extents_of(numbers, text, column.field.shape.rank() > 0));
      if (column.field.dtype == DType::kI64 && !numbers.are_integers()) {
        fail_member(column.choice.name, "holds a number that is no integer, and the first samples hold integers",
                    "write them as floating-point numbers throughout");
      }
      return put(numbers.bytes(column.field.dtype));
    }
  }
}

void MemberFields::check_shape(const Column& column, std::span<const std::int64_t> extents) {
  const Shape& wanted = column.field.shape;
  const bool dynamic = wanted.is_dynamic();
  if (dynamic && !extents.empty() && std::ranges::count(extents, 0) > 0) return;
  const Shape shape(extents);
  bool same = shape.rank() == wanted.rank();
  for (int axis = dynamic ? 1 : 0; same && axis < shape.rank(); ++axis) same = shape[axis] == wanted[axis];
  if (same) return;
  fail_member(
      column.choice.name,
      fmt::format("has the shape {} where the first samples have {}", shape.to_string(), wanted.to_string()),
      dynamic ? "" : fmt::format("where lists differ in length, say '{}:list'", column.choice.name));
}

}  // namespace headrace
