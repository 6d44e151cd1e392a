#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archive_files.h"
#include "headrace/pipeline/sources/cifar_binary.h"
#include "headrace/pipeline/sources/cifar_pickles.h"
#include "headrace/pipeline/sources/csv_manifest.h"
#include "headrace/pipeline/sources/idx.h"
#include "headrace/pipeline/sources/image_listing.h"
#include "headrace/pipeline/sources/known_formats.h"
#include "headrace/pipeline/sources/numpy_arrays.h"
#include "headrace/pipeline/sources/record_file.h"
#include "headrace/pipeline/sources/tf_records.h"
#include "headrace/pipeline/sources/web_dataset.h"
#include "headrace/pipeline/sources/web_samples.h"

namespace headrace {
namespace {

bool has_idx(const std::filesystem::path& folder) {
  for (const char* stem : {"train-images", "t10k-images"}) {
    if (!find_idx(folder, stem, 3).empty()) return true;
  }
  return false;
}

enum class Files { kTfRecord, kArchive, kNumpy, kOther };

bool ends_in(const std::string& name, std::initializer_list<const char*> endings) {
  return std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); });
}

// What a folder without folders in it consists of.
Files find_files(const std::filesystem::path& folder) {
  bool has_tar = false, has_zip = false, has_npy = false, has_image = false;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const std::string name = entry.path.filename().string();
    if (entry.is_directory) return Files::kOther;
    if (is_tf_shard(entry.path)) return Files::kTfRecord;
    has_tar = has_tar || is_web_shard(entry.path);
    has_zip = has_zip || ends_in(name, {".zip"});
    has_npy = has_npy || ends_in(name, {".npy"});
    has_image = has_image || is_image_path(name);
  }
  if (has_tar) return Files::kArchive;
  if (has_image) return Files::kOther;
  return has_zip ? Files::kArchive : has_npy ? Files::kNumpy : Files::kOther;
}

// Of the names that CIFAR's pickles have, those of files in the folder.
std::vector<std::string> names_of_pickles(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const char* name : {"data_batch_1", "test_batch", "train", "test", "meta"}) {
    if (path_kind(folder / name) == PathKind::kFile) names.emplace_back(name);
  }
  return names;
}

SourcePtr open_folder(const std::filesystem::path& folder, Split split) {
  if (has_idx(folder)) return idx_folder(folder, split);
  if (find_cifar(folder) != CifarFormat::kNone) return cifar_binary(folder, split);
  refuse_cifar_pickles(names_of_pickles(folder), folder.string());
  switch (find_files(folder)) {
    case Files::kTfRecord: return tf_records(folder, {.split = split});
    case Files::kArchive: return web_dataset(folder, {.split = split});
    case Files::kNumpy: return numpy_arrays(folder, {.split = split});
    case Files::kOther: break;
  }
  return image_folder(folder, split);
}

// Of a format that has no splits within one file.
SourcePtr open_one_split(const std::filesystem::path& file, Split split,
                         SourcePtr (*open)(const std::filesystem::path&)) {
  if (split == Split::kTrain) return open(file);
  throw ConfigError(file.string() + ": one file has no two splits: all of it is the train split",
                    "name the file of the test split");
}

SourcePtr open_file(const std::filesystem::path& file, Split split) {
  if (is_record_file(file)) return record_file(file, split);
  if (is_npz(file)) return numpy_arrays(file, {.split = split});
  if (is_npy(file)) return open_one_split(file, split, [](const auto& path) { return numpy_arrays(path); });
  if (is_csv_manifest(file))
    return open_one_split(file, split, [](const auto& path) { return csv_manifest(path); });
  if (is_tf_record(file)) return open_one_split(file, split, [](const auto& path) { return tf_records(path); });
  if (!is_archive(file)) throw not_recognised(file);
  if (is_web_dataset(file)) return open_one_split(file, split, [](const auto& path) { return web_dataset(path); });
  return image_archive(file, {.split = split});
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
                      accepted_formats());
    case PathKind::kOther: break;
  }
  throw DataError(ErrorCode::kUnsupported, "is neither a file nor a folder", {.source = path.string()},
                  accepted_formats());
}

}  // namespace headrace
