#include "headrace/pipeline/sources/arrays/array_formats.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/byte_input.h"
#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/pipeline/sources/arrays/array_source.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

constexpr int kMaxAxes = Shape::kMaxRank;  // a batch has as many as the file

constexpr std::uint64_t kMaxRecord = std::uint64_t{1} << 40;  // elements

// The types, by the header's third byte, with the word that names them in a file's name.
struct Type {
  int code;
  FileElement element;
  const char* word;
};
constexpr Type kTypes[] = {
    {0x08, {.kind = FileElement::Kind::kUnsigned, .bytes = 1, .big_endian = true}, "ubyte"},
    {0x09, {.kind = FileElement::Kind::kSigned, .bytes = 1, .big_endian = true}, "byte"},
    {0x0B, {.kind = FileElement::Kind::kSigned, .bytes = 2, .big_endian = true}, "short"},
    {0x0C, {.kind = FileElement::Kind::kSigned, .bytes = 4, .big_endian = true}, "int"},
    {0x0D, {.kind = FileElement::Kind::kFloat, .bytes = 4, .big_endian = true}, "float"},
    {0x0E, {.kind = FileElement::Kind::kFloat, .bytes = 8, .big_endian = true}, "double"},
};

[[noreturn]] void throw_bad_idx(const ByteInput& input, const std::string& what, std::uint64_t offset,
                                std::string hint = {}) {
  throw DataError(ErrorCode::kDataCorrupt, what, {.source = input.name(), .offset = offset}, std::move(hint));
}

std::uint32_t read_big_endian(ByteInput& input) {
  std::array<std::byte, 4> bytes;
  input.read_exact(bytes, "the IDX header");
  std::uint32_t value = 0;
  for (std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

// Sets the type and returns the number of axes.
int read_magic(ByteInput& input, FileElement& element) {
  const std::uint32_t magic = read_big_endian(input);
  const auto axes = static_cast<int>(magic & 0xFF), code = static_cast<int>(magic >> 8 & 0xFF);
  if (magic >> 16 != 0 || axes < 1) {
    throw_bad_idx(input, "is no IDX file", 0,
                  "an IDX file starts with two zero bytes, a type and the number of axes");
  }
  if (axes > kMaxAxes) {
    throw_bad_idx(input, "has " + std::to_string(axes) + " axes", 3,
                  "up to " + std::to_string(kMaxAxes) + " are read");
  }
  for (const Type& type : kTypes) {
    if (type.code != code) continue;
    element = type.element;
    return axes;
  }
  throw_bad_idx(input, "holds elements of an unknown type, " + std::to_string(code), 2,
                "8 unsigned byte, 9 byte, 11 short, 12 int, 13 float, 14 double");
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& path) {
  const std::unique_ptr<ByteInput> input = open_input(path);
  IdxFile file;
  const int axes = read_magic(*input, file.element);
  std::uint64_t bytes = file.element.bytes, one = 1;
  for (int axis = 0; axis < axes; ++axis) {
    const std::uint64_t offset = input->position();
    const std::uint32_t extent = read_big_endian(*input);
    file.extents.push_back(extent);
    // The remaining bytes bound each partial product too, so that it cannot wrap around; without a record no bytes
    // remain.
    const bool fits = extent == 0 || bytes <= input->max_left() / extent;
    if (axis > 0 && extent != 0) one = one > kMaxRecord / extent ? kMaxRecord + 1 : one * extent;
    if (!fits || one > kMaxRecord)
      throw_bad_idx(*input, "the header promises more elements than the file can hold", offset,
                    "copy or download it again: it was cut off, or is no IDX file");
    bytes *= extent;
  }
  file.elements.resize(bytes);
  input->read_exact(file.elements, "the IDX data");
  std::byte extra{};
  const std::uint64_t end = input->position();
  if (input->read(std::span(&extra, 1)) != 0) throw_bad_idx(*input, "has bytes left over after its elements", end);
  return file;
}

std::filesystem::path find_idx(const std::filesystem::path& folder, const char* stem, int axes) {
  const auto find = [&](int rank, const char* type) -> std::filesystem::path {
    const std::string ending = "idx" + std::to_string(rank) + "-" + type;
    for (const char* joint : {"-", "."}) {
      for (const char* packing : {"", ".gz"}) {
        std::filesystem::path path = folder / (stem + (joint + ending) + packing);
        if (path_kind(path) == PathKind::kFile) return path;
      }
    }
    return {};
  };
  for (const Type& type : kTypes) {
    if (std::filesystem::path path = find(axes, type.word); !path.empty()) return path;
  }
  for (int rank = 1; rank <= kMaxAxes; ++rank) {
    for (const Type& type : kTypes) {
      if (std::filesystem::path path = find(rank, type.word); !path.empty()) return path;
    }
  }
  return {};
}

namespace {

// Returns the axes of one record: an image of two axes has one channel.
Shape record_shape(const std::vector<std::int64_t>& extents) {
  if (extents.size() == 3) return {extents[1], extents[2], 1};
  return Shape(std::span(extents).subspan(1));
}

Array image_array(IdxFile file) {
  Array array{
      .field = {.name = "image", .dtype = tensor_type_of(file.element), .shape = record_shape(file.extents)},
      .bytes = {}};
  if (is_tensor_type(file.element)) {
    array.bytes = std::move(file.elements);
  } else {
    array.bytes.resize(file.elements.size() / file.element.bytes * size_of(array.field.dtype));
    convert_elements(file.element, file.elements, array.bytes);
  }
  return array;
}

void check_labels(const IdxFile& labels, std::int64_t records, const std::string& path,
                  const std::string& images) {
  const auto refuse = [&](const std::string& what) {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = path},
                    "put the labels of " + images + " there, one number an image");
  };
  if (labels.extents.size() != 1) {
    refuse("holds no labels: it has " + std::to_string(labels.extents.size()) + " axes, not 1");
  }
  if (labels.element.kind == FileElement::Kind::kFloat) refuse("holds no labels: its numbers are not integers");
  if (labels.extents[0] != records) {
    refuse("has " + std::to_string(labels.extents[0]) + " labels for " + std::to_string(records) + " images in " +
           images);
  }
}

}  // namespace

SourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels,
                    std::uint64_t label_count) {
  IdxFile pixels = read_idx(images);
  const IdxFile classes = read_idx(labels);
  check_labels(classes, pixels.extents[0], labels.string(), images.filename().string());
  const std::uint64_t begins_at = 4 + 4 * pixels.extents.size();  // of the images, after the header
  std::vector<Array> arrays;
  arrays.push_back(image_array(std::move(pixels)));
  arrays.push_back(label_array(classes.elements, classes.element));
  return opened_by(
      IdxFilesCall{.images = images, .labels = labels, .label_count = label_count},
      std::make_shared<ArraySource>(images.string(), static_cast<std::uint64_t>(classes.extents[0]),
                                    std::move(arrays), std::vector<std::string>(), label_count, begins_at));
}

SourcePtr idx_folder(const std::filesystem::path& folder, Split split, std::uint64_t label_count) {
  const std::string stem = split == Split::kTrain ? "train" : "t10k";
  const std::filesystem::path images = find_idx(folder, (stem + "-images").c_str(), 3);
  const std::filesystem::path labels = find_idx(folder, (stem + "-labels").c_str(), 1);
  if (images.empty() || labels.empty()) {
    throw DataError(ErrorCode::kNotFound,
                    "has no " + stem + (images.empty() ? "-images-idx3-ubyte" : "-labels-idx1-ubyte"),
                    {.source = folder.string()}, "looked for it plain and as .gz, and with a dot before idx");
  }
  return opened_by(IdxFolderCall{{folder, {split, label_count}}}, idx_files(images, labels, label_count));
}

}  // namespace headrace
