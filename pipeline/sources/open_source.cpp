#include <algorithm>

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

SourcePtr open_folder(const std::filesystem::path& folder, Split split) {
  if (has_idx(folder)) return idx_folder(folder, split);
  if (find_cifar(folder) != CifarFormat::kNone) return cifar_binary(folder, split);
  switch (find_files(folder)) {
    case Files::kTfRecord: return tf_records(folder, {.split = split});
    case Files::kTar: return web_dataset(folder, {.split = split});
    case Files::kOther: break;
  }
  return image_folder(folder, split);
}

SourcePtr open_file(const std::filesystem::path& file, Split split) {
  if (is_record_file(file)) return record_file(file, split);
  const bool table = is_csv_manifest(file), records = !table && is_tf_record(file);
  if (!table && !records && !is_web_dataset(file)) return image_archive(file, {.split = split});
  if (split == Split::kTest) {
    throw ConfigError(file.string() + ": one file has no two splits: all of it is the train split",
                      "name the file of the test split");
  }
  if (table) return csv_manifest(file);
  return records ? tf_records(file) : web_dataset(file);
}

}  // namespace

Split parse_split(const std::string& name) {
  if (name == "train") return Split::kTrain;
  if (name == "test") return Split::kTest;
  throw ConfigError("there is no split '" + name + "'", "use train or test");
}

SourcePtr open_source(const std::filesystem::path& path, Split split) {
  switch (path_kind(path)) {
    case PathKind::kDirectory: return open_folder(path, split);
    case PathKind::kFile: return open_file(path, split);
    case PathKind::kMissing:
      throw DataError(ErrorCode::kNotFound, "there is no such file or folder", {.source = path.string()},
                      kUnderstood);
    case PathKind::kOther: break;
  }
  throw DataError(ErrorCode::kUnsupported, "is neither a file nor a folder", {.source = path.string()},
                  kUnderstood);
}

}  // namespace headrace
