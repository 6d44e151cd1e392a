#include "headrace/pipeline/sources/idx.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/array_source.h"
#include "headrace/pipeline/sources/byte_input.h"
#include "headrace/pipeline/sources/label_array.h"

namespace headrace {
namespace {

constexpr int kUnsignedByte = 0x08;
constexpr int kMostAxes = 4;

[[noreturn]] void fail(const ByteInput& input, const std::string& what, std::uint64_t offset,
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

int read_axes(ByteInput& input) {
  const std::uint32_t magic = read_big_endian(input);
  const auto axes = static_cast<int>(magic & 0xFF);
  if (magic >> 16 != 0 || axes < 1 || axes > kMostAxes) {
    fail(input, "is no IDX file", 0, "an IDX file starts with two zero bytes, a type and 1 to 4 axes");
  }
  if ((magic >> 8 & 0xFF) != kUnsignedByte) fail(input, "holds other elements than unsigned bytes", 2);
  return axes;
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& path) {
  const std::unique_ptr<ByteInput> input = open_input(path);
  IdxFile file;
  const int axes = read_axes(*input);
  std::uint64_t bytes = 1;
  for (int axis = 0; axis < axes; ++axis) {
    const std::uint64_t offset = input->position();
    const std::uint32_t extent = read_big_endian(*input);
    file.extents.push_back(extent);
    // What is left bounds each partial product too, so that it cannot wrap around.
    if (extent != 0 && bytes > input->most_left() / extent) {
      fail(*input, "the header promises more elements than the file can hold", offset);
    }
    bytes *= extent;
  }
  file.elements.resize(bytes);
  input->read_exact(file.elements, "the IDX data");
  std::byte extra{};
  const std::uint64_t end = input->position();
  if (input->read(std::span(&extra, 1)) != 0) fail(*input, "has bytes left over after its elements", end);
  return file;
}

std::filesystem::path find_idx(const std::filesystem::path& folder, const char* stem, int axes) {
  const std::string ending = "idx" + std::to_string(axes) + "-ubyte";
  for (const char* joint : {"-", "."}) {
    for (const char* packing : {"", ".gz"}) {
      std::filesystem::path path = folder / (stem + (joint + ending) + packing);
      if (path_kind(path) == PathKind::kFile) return path;
    }
  }
  return {};
}

SourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels,
                    std::uint64_t label_count) {
  IdxFile pixels = read_idx(images);
  if (pixels.extents.size() < 3) {
    throw DataError(ErrorCode::kDataCorrupt,
                    "holds no images: it has " + std::to_string(pixels.extents.size()) + " axes, not 3 or 4",
                    {.source = images.string()});
  }
  const IdxFile classes = read_idx(labels);
  if (classes.extents.size() != 1) {
    throw DataError(ErrorCode::kDataCorrupt,
                    "holds no labels: it has " + std::to_string(classes.extents.size()) + " axes, not 1",
                    {.source = labels.string()});
  }
  if (classes.extents[0] != pixels.extents[0]) {
    throw DataError(ErrorCode::kDataCorrupt,
                    "has " + std::to_string(classes.extents[0]) + " labels for " +
                        std::to_string(pixels.extents[0]) + " images in " + images.filename().string(),
                    {.source = labels.string()});
  }
  const std::uint64_t begins_at = 4 + 4 * pixels.extents.size();  // of the images, behind the header
  const std::int64_t channels = pixels.extents.size() == 4 ? pixels.extents[3] : 1;
  const Shape shape = {pixels.extents[1], pixels.extents[2], channels};
  std::vector<Array> arrays;
  arrays.push_back(
      {.field = {.name = "image", .dtype = DType::kU8, .shape = shape}, .bytes = std::move(pixels.elements)});
  arrays.push_back(label_array(classes.elements));
  return std::make_shared<ArraySource>(images.string(), static_cast<std::uint64_t>(classes.extents[0]),
                                       std::move(arrays), std::vector<std::string>(), label_count, begins_at);
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
  return idx_files(images, labels, label_count);
}

}  // namespace headrace
