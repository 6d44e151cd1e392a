#include "headrace/pipeline/sources/arrays/array_formats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/arrays/array_source.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

constexpr std::size_t kPlane = 32 * 32;
constexpr std::size_t kImageBytes = 3 * kPlane;

// The start of a record, before its 3072 bytes of pixels.
struct Layout {
  std::size_t label_bytes;  // before the image
  std::size_t label_at;     // among them
  std::size_t classes;
  const char* names;  // the text file of the class names, one per line

  std::size_t record_bytes() const { return label_bytes + kImageBytes; }
};
constexpr Layout kCifar10{.label_bytes = 1, .label_at = 0, .classes = 10, .names = "batches.meta.txt"};
constexpr Layout kCifar100{.label_bytes = 2, .label_at = 1, .classes = 100, .names = "fine_label_names.txt"};

struct Records {
  std::vector<std::byte> pixels;  // HWC
  std::vector<std::byte> labels;
};

// Converts three planes to interleaved pixels.
void append_image(const std::byte* planes, std::vector<std::byte>& pixels) {
  const std::size_t at = pixels.size();
  pixels.resize(at + kImageBytes);
  std::byte* out = pixels.data() + at;
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel) *out++ = planes[channel * kPlane + i];
  }
}

void append_file(const std::filesystem::path& path, const Layout& layout, Records& records) {
  const std::vector<std::byte> bytes = read_whole_file(path);
  const std::size_t one = layout.record_bytes(), count = bytes.size() / one;
  if (bytes.empty() || bytes.size() % one != 0) {
    throw DataError(
        ErrorCode::kDataCorrupt,
        "has " + std::to_string(bytes.size()) + " bytes, no multiple of a record's " + std::to_string(one),
        {.source = path.string(), .record = count, .offset = count * one}, "the file is cut short or no CIFAR");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = bytes.data() + i * one;
    records.labels.push_back(record[layout.label_at]);
    append_image(record + layout.label_bytes, records.pixels);
  }
}

// Returns the class names; none if the file is missing or has another number of classes.
std::vector<std::string> read_names(const std::filesystem::path& path, std::size_t classes) {
  std::vector<std::string> names;
  if (path_kind(path) != PathKind::kFile) return names;
  const std::vector<std::byte> bytes = read_whole_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) names.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names.size() == classes ? names : std::vector<std::string>();
}

std::vector<std::string> cifar_files_of(CifarFormat format, Split split) {
  if (format == CifarFormat::kCifar100) return {split == Split::kTrain ? "train.bin" : "test.bin"};
  if (split == Split::kTest) return {"test_batch.bin"};
  std::vector<std::string> files;
  for (int i = 1; i <= 5; ++i) files.push_back("data_batch_" + std::to_string(i) + ".bin");
  return files;
}

}  // namespace

CifarFormat find_cifar(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) { return path_kind(folder / name) == PathKind::kFile; };
  if (has("data_batch_1.bin") || has("test_batch.bin")) return CifarFormat::kCifar10;
  return has("train.bin") || has("test.bin") ? CifarFormat::kCifar100 : CifarFormat::kNone;
}

SourcePtr cifar_binary(const std::filesystem::path& folder, Split split) {
  const CifarFormat format = find_cifar(folder);
  if (format == CifarFormat::kNone) {
    throw DataError(ErrorCode::kNotFound, "has neither data_batch_1.bin nor train.bin",
                    {.source = folder.string()},
                    "this is for the folders cifar-10-batches-bin and cifar-100-binary");
  }
  const Layout& layout = format == CifarFormat::kCifar10 ? kCifar10 : kCifar100;
  Records records;
  for (const std::string& file : cifar_files_of(format, split)) append_file(folder / file, layout, records);
  std::vector<Array> arrays;
  arrays.push_back(
      {.field = {.name = "image", .dtype = DType::kU8, .shape = {32, 32, 3}, .layout = ImageLayout::kChannelsLast},
       .bytes = std::move(records.pixels)});
  arrays.push_back(label_array(records.labels));
  return opened_by(
      CifarBinaryCall{{folder, {split}}},
      std::make_shared<ArraySource>(folder.string(), records.labels.size(), std::move(arrays),
                                    read_names(folder / layout.names, layout.classes), layout.classes));
}

}  // namespace headrace
