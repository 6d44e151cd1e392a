#include "headrace/pipeline/sources/arrow/arrow_type.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr int kMaxNesting = 32;

using Kind = FileElement::Kind;

struct NumberFormat {
  std::string_view format;  // a prefix: "ts" is a timestamp of any unit and zone
  FileElement element;
};

// Of the specification, "Data type description -- format strings".
constexpr NumberFormat kNumberFormats[] = {
    {"c", {Kind::kSigned, 1}},   {"C", {Kind::kUnsigned, 1}}, {"s", {Kind::kSigned, 2}},
    {"S", {Kind::kUnsigned, 2}}, {"i", {Kind::kSigned, 4}},   {"I", {Kind::kUnsigned, 4}},
    {"l", {Kind::kSigned, 8}},   {"L", {Kind::kUnsigned, 8}}, {"e", {Kind::kFloat, 2}},
    {"f", {Kind::kFloat, 4}},    {"g", {Kind::kFloat, 8}},    {"tdD", {Kind::kSigned, 4}},
    {"tdm", {Kind::kSigned, 8}}, {"tts", {Kind::kSigned, 4}}, {"ttm", {Kind::kSigned, 4}},
    {"ttu", {Kind::kSigned, 8}}, {"ttn", {Kind::kSigned, 8}}, {"ts", {Kind::kSigned, 8}},
    {"tD", {Kind::kSigned, 8}},
};

std::optional<FileElement> number_format(std::string_view format) {
  for (const NumberFormat& known : kNumberFormats) {
    const bool is_prefix = known.format.size() == 2;
    if (format == known.format || (is_prefix && format.starts_with(known.format))) return known.element;
  }
  return std::nullopt;
}

std::int64_t number_after(std::string_view format, std::size_t prefix) {
  std::int64_t value = -1;
  std::from_chars(format.data() + prefix, format.data() + format.size(), value);
  return value;
}

bool set_bytes(ArrowType& type, std::string_view format) {
  const bool is_view = format.starts_with('v');
  const std::string_view letter = is_view ? format.substr(1) : format;
  if (letter != "u" && letter != "z" && (is_view || (letter != "U" && letter != "Z"))) return false;
  type.kind = ArrowKind::kBytes;
  type.is_text = letter == "u" || letter == "U";
  const bool is_large = letter == "U" || letter == "Z";
  type.layout = is_view ? ArrowLayout::kViews : is_large ? ArrowLayout::kOffsets64 : ArrowLayout::kOffsets32;
  return true;
}

void set_kind(ArrowType& type, std::string_view format) {
  if (const auto element = number_format(format)) {
    type.kind = ArrowKind::kNumbers;
    type.element = *element;
  } else if (set_bytes(type, format)) {
  } else if (format == "b") {
    type.kind = ArrowKind::kBits;
  } else if (format.starts_with("+w:")) {
    type.kind = ArrowKind::kFixedList;
    type.width = number_after(format, 3);
  } else if (format == "+l" || format == "+L") {
    type.kind = ArrowKind::kList;
    type.layout = format == "+l" ? ArrowLayout::kOffsets32 : ArrowLayout::kOffsets64;
  } else if (format == "+s") {
    type.kind = ArrowKind::kStruct;
  }
}

// Returns the value of a key in the schema's metadata; empty if it is not there.
std::string_view metadata_value(const char* metadata, std::string_view key) {
  if (metadata == nullptr) return {};
  const auto take_number = [&] {
    std::int32_t number = 0;
    std::memcpy(&number, metadata, sizeof number);
    metadata += sizeof number;
    return number;
  };
  const auto take_text = [&] {
    const std::int32_t size = take_number();
    const std::string_view text(metadata, static_cast<std::size_t>(size));
    metadata += size;
    return text;
  };
  for (std::int32_t left = take_number(); left > 0; --left) {
    const std::string_view name = take_text(), value = take_text();
    if (name == key) return value;
  }
  return {};
}

// The extents of an arrow.fixed_shape_tensor; its elements must lie in their usual order.
std::vector<std::int64_t> tensor_shape(const ArrowSchema& schema, const std::string& source, std::int64_t width) {
  if (metadata_value(schema.metadata, "ARROW:extension:name") != "arrow.fixed_shape_tensor") return {};
  const auto json =
      nlohmann::json::parse(metadata_value(schema.metadata, "ARROW:extension:metadata"), nullptr, false);
  const auto extents = json.is_object() ? json.value("shape", nlohmann::json()) : nlohmann::json();
  std::vector<std::int64_t> shape;
  for (const auto& extent : extents) {
    if (extent.is_number_integer()) shape.push_back(extent.get<std::int64_t>());
  }
  const auto order = json.is_object() ? json.value("permutation", nlohmann::json()) : nlohmann::json();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order.at(i) != i) shape.clear();
  }
  const std::int64_t elements = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
  if (!shape.empty() && shape.size() == extents.size() && elements == width) return shape;
  throw DataError(ErrorCode::kUnsupported,
                  fmt::format("column '{}' holds tensors in another order of axes", schema.name),
                  {.source = source}, "write it in row-major order, without a permutation");
}

ArrowType parse(const ArrowSchema& schema, const std::string& source, int depth) {
  if (schema.format == nullptr || depth > kMaxNesting) {
    throw DataError(ErrorCode::kDataCorrupt, "the Arrow schema has no format, or is nested too deeply",
                    {.source = source});
  }
  ArrowType type;
  type.name = schema.name != nullptr ? schema.name : "";
  type.format = schema.format;
  set_kind(type, type.format);
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    type.children.push_back(parse(*schema.children[i], source, depth + 1));
  }
  if (schema.dictionary != nullptr) {
    const bool is_index = type.kind == ArrowKind::kNumbers && type.element.kind != Kind::kFloat;
    type.kind = is_index ? ArrowKind::kDictionary : ArrowKind::kOther;
    type.children = {parse(*schema.dictionary, source, depth + 1)};
  }
  const bool is_odd = (type.is_list() && type.children.size() != 1) || type.width < 0;
  if (is_odd) type.kind = ArrowKind::kOther;
  if (type.kind == ArrowKind::kFixedList) type.tensor_shape = tensor_shape(schema, source, type.width);
  return type;
}

}  // namespace

std::string describe(const ArrowType& type) {
  switch (type.kind) {
    case ArrowKind::kNumbers: {
      const char* kind = type.element.kind == Kind::kFloat      ? "float"
                         : type.element.kind == Kind::kUnsigned ? "uint"
                                                                : "int";
      return type.format.starts_with('t') ? "times" : kind + std::to_string(8 * type.element.bytes);
    }
    case ArrowKind::kBits: return "booleans";
    case ArrowKind::kBytes: return type.is_text ? "text" : "bytes";
    case ArrowKind::kList: return "lists of " + describe(type.children.front());
    case ArrowKind::kFixedList: return fmt::format("{} {}", type.width, describe(type.children.front()));
    case ArrowKind::kStruct: return "a struct";
    case ArrowKind::kDictionary: return describe(type.children.front()) + " in a dictionary";
    case ArrowKind::kOther: break;
  }
  return "Arrow format '" + type.format + "'";
}

ArrowType parse_arrow_schema(const ArrowSchema& schema, const std::string& source) {
  ArrowType type = parse(schema, source, 0);
  if (type.kind == ArrowKind::kStruct) return type;
  throw DataError(ErrorCode::kUnsupported,
                  "the Arrow stream gives single arrays (" + describe(type) + "), no table", {.source = source},
                  "give a table or record batches, whose columns have names");
}

std::vector<std::string> find_class_names(const ArrowSchema& schema, const std::string& column) {
  const auto json = nlohmann::json::parse(metadata_value(schema.metadata, "huggingface"), nullptr, false);
  const auto names = nlohmann::json::json_pointer("/info/features") / column / "names";
  if (!json.is_object() || !json.contains(names) || !json.at(names).is_array()) return {};
  std::vector<std::string> classes;
  for (const auto& name : json.at(names)) {
    if (name.is_string()) classes.push_back(name.get<std::string>());
  }
  return classes;
}

}  // namespace headrace
