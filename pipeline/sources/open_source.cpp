#include <algorithm>
#include <functional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/cifar_binary.h"
#include "headrace/pipeline/sources/csv_manifest.h"
#include "headrace/pipeline/sources/idx.h"
#include "headrace/pipeline/sources/record_file.h"
#include "headrace/pipeline/sources/tf_records.h"
#include "headrace/pipeline/sources/web_samples.h"

namespace headrace {
namespace {

constexpr const char* kUnderstood =
    "understood are folders of MNIST's idx files, of CIFAR's .bin files, of .tfrecord or WebDataset .tar files or "
    "of images by class, such images in a .tar, .tar.gz or .tar.zst, a .csv with the columns path and label, and "
    "record files of headrace convert";

bool has_idx(const std::filesystem::path& folder) {
  for (const char* stem : {"train-images", "t10k-images"}) {
    if (!find_idx(folder, stem, 3).empty()) return true;
  }
  return false;
}

enum class Files { kTfRecord, kTar, kOther };

// What a folder without folders in it consists of.
Files find_files(const std::filesystem::path& folder) {
  Files found = Files::kOther;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const std::string name = entry.path.filename().string();
    const auto ends = [&](std::initializer_list<const char*> endings) {
      return std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); });
    };
    if (entry.is_directory) return Files::kOther;
    if (ends({".tfrecord", ".tfrecords"})) return Files::kTfRecord;
    if (ends({".tar", ".tar.gz", ".tgz", ".tar.zst"})) found = Files::kTar;
  }
  return found;
}

// Folders say what images are only where there are some: an option without effect is refused.
void refuse_layout(const std::filesystem::path& path, const std::string& format, const LayoutOptions& layout) {
  if (layout.empty()) return;
  throw ConfigError(path.string() + ": holds " + format + ", whose classes and splits no folders name",
                    "leave out --classes-at, --train-folder and --test-folder");
}

OpenedSource open_folder(const std::filesystem::path& folder, Split split, const SourceOptions& options) {
  const auto opened = [&](const std::string& format, const auto& open) -> OpenedSource {
    refuse_layout(folder, format, options.layout);
    return {.format = format, .source = open()};
  };
  const std::uint64_t count = options.label_count;
  if (has_idx(folder)) return opened("IDX files", [&] { return idx_folder(folder, split, count); });
  if (find_cifar(folder) != CifarFormat::kNone) {
    return opened("CIFAR binaries", [&] { return cifar_binary(folder, split); });
  }
  switch (find_files(folder)) {
    case Files::kTfRecord:
      return opened("TFRecord files",
                    [&] { return tf_records(folder, TfRecordOptions{.split = split, .label_count = count}); });
    case Files::kTar:
      return opened("WebDataset archives",
                    [&] { return web_dataset(folder, WebDatasetOptions{.split = split, .label_count = count}); });
    case Files::kOther: break;
  }
  return {.format = "images in folders", .source = image_folder(folder, split, options.layout)};
}

// A file that has one split: all of it is train.
OpenedSource open_whole(const std::filesystem::path& file, Split split, const SourceOptions& options,
                        const std::string& format, const std::function<SourcePtr()>& open) {
  refuse_layout(file, format, options.layout);
  if (split == Split::kTest) {
    throw ConfigError(file.string() + ": one file has no two splits: all of it is the train split",
                      "name the file of the test split");
  }
  return {.format = format, .source = open()};
}

OpenedSource open_file(const std::filesystem::path& file, Split split, const SourceOptions& options) {
  const std::uint64_t count = options.label_count;
  if (is_record_file(file)) {
    refuse_layout(file, "records", options.layout);
    return {.format = "a record file", .source = record_file(file, split)};
  }
  if (is_csv_manifest(file)) {
    return open_whole(file, split, options, "a CSV table of images",
                      [&] { return csv_manifest(file, {.label_count = count}); });
  }
  if (is_tf_record(file)) {
    return open_whole(file, split, options, "TFRecords",
                      [&] { return tf_records(file, TfRecordOptions{.label_count = count}); });
  }
  if (is_web_dataset(file)) {
    return open_whole(file, split, options, "a WebDataset archive",
                      [&] { return web_dataset(file, WebDatasetOptions{.label_count = count}); });
  }
  return {.format = "images in the folders of an archive",
          .source = image_archive(file, {.split = split, .layout = options.layout})};
}

}  // namespace

Split parse_split(const std::string& name) {
  if (name == "train") return Split::kTrain;
  if (name == "test") return Split::kTest;
  throw ConfigError("there is no split '" + name + "'", "use train or test");
}

OpenedSource recognise_source(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  switch (path_kind(path)) {
    case PathKind::kDirectory: return open_folder(path, split, options);
    case PathKind::kFile: return open_file(path, split, options);
    case PathKind::kMissing:
      throw DataError(ErrorCode::kNotFound, "there is no such file or folder", {.source = path.string()},
                      kUnderstood);
    case PathKind::kOther: break;
  }
  throw DataError(ErrorCode::kUnsupported, "is neither a file nor a folder", {.source = path.string()},
                  kUnderstood);
}

SourcePtr open_source(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  return recognise_source(path, split, options).source;
}

}  // namespace headrace
