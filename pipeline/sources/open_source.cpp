#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "headrace/devices/base/did_you_mean.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/archives/known_formats.h"
#include "headrace/pipeline/sources/arrays/cifar_binary.h"
#include "headrace/pipeline/sources/arrays/idx.h"
#include "headrace/pipeline/sources/arrays/numpy_arrays.h"
#include "headrace/pipeline/sources/images/cifar_pickles.h"
#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/record_file.h"
#include "headrace/pipeline/sources/records/tf_records.h"
#include "headrace/pipeline/sources/records/web_dataset.h"
#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/tables/csv_manifest.h"

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

TfRecordOptions tf_options(const SourceOptions& options, Split split) {
  TfRecordOptions how{.split = split,
                      .label_count = options.label_count,
                      .feature_keys = options.columns.more,
                      .label_type = options.columns.label_type};
  if (!options.columns.image.empty()) how.image_keys = {options.columns.image};
  if (!options.columns.label.empty()) how.label_keys = {options.columns.label};
  return how;
}

// Folders say what images are only where there are some: an option without effect is refused.
void refuse_layout(const std::filesystem::path& path, const std::string& format, const LayoutOptions& layout) {
  if (layout.empty()) return;
  throw ConfigError(
      path.string() + ": holds " + format + ", whose classes and splits no folders name",
      joined({"leave out " + named("LayoutOptions::classes_at"), named("LayoutOptions::train_folder")}, ", ") +
          " and " + named("LayoutOptions::test_folder"));
}

// Nor are columns anywhere but in tables and TFRecords.
void refuse_columns(const std::filesystem::path& path, const std::string& format, const ColumnOptions& columns) {
  if (columns.empty()) return;
  throw ConfigError(
      path.string() + ": holds " + format + "; only CSV tables and TFRecords have columns to choose from",
      joined({"leave out " + named("ColumnOptions::image"), named("ColumnOptions::label"),
              named("ColumnOptions::label_type"), named("ColumnOptions::more")},
             ", "));
}

OpenedSource open_folder(const std::filesystem::path& folder, Split split, const SourceOptions& options) {
  const auto opened = [&](const std::string& format, const auto& open) -> OpenedSource {
    refuse_layout(folder, format, options.layout);
    refuse_columns(folder, format, options.columns);
    return {.format = format, .source = open()};
  };
  const std::uint64_t count = options.label_count;
  if (has_idx(folder)) return opened("IDX files", [&] { return idx_folder(folder, split, count); });
  if (find_cifar(folder) != CifarFormat::kNone) {
    return opened("CIFAR binaries", [&] { return cifar_binary(folder, split); });
  }
  refuse_cifar_pickles(names_of_pickles(folder), folder.string());
  switch (find_files(folder)) {
    case Files::kTfRecord:
      refuse_layout(folder, "TFRecord files", options.layout);
      return {.format = "TFRecord files", .source = tf_records(folder, tf_options(options, split))};
    case Files::kArchive:
      return opened("WebDataset archives",
                    [&] { return web_dataset(folder, WebDatasetOptions{.split = split, .label_count = count}); });
    case Files::kNumpy: return opened("NumPy arrays", [&] { return numpy_arrays(folder, {.split = split}); });
    case Files::kOther: break;
  }
  refuse_columns(folder, "images in folders", options.columns);
  return {.format = "images in folders", .source = image_folder(folder, split, options.layout)};
}

// A file that has one split: all of it is train.
OpenedSource open_whole(const std::filesystem::path& file, Split split, const SourceOptions& options,
                        const std::string& format, const std::function<SourcePtr()>& open) {
  refuse_layout(file, format, options.layout);
  if (split == Split::kTest) {
    throw ConfigError(
        file.string() + ": one file has no two splits: all of it is the train split",
        joined({"name the file of the test split", advice("read all of it with {}", named("split", "train"))}));
  }
  return {.format = format, .source = open()};
}

OpenedSource open_file(const std::filesystem::path& file, Split split, const SourceOptions& options) {
  const std::uint64_t count = options.label_count;
  const auto opened = [&](const std::string& format, const auto& open) -> OpenedSource {
    refuse_layout(file, format, options.layout);
    refuse_columns(file, format, options.columns);
    return {.format = format, .source = open()};
  };
  if (is_record_file(file)) return opened("records", [&] { return record_file(file, split); });
  if (is_npz(file)) return opened("NumPy arrays", [&] { return numpy_arrays(file, {.split = split}); });
  // Whoever names columns means a table: which of them it lacks is the error.
  if (is_csv_manifest(file, options.columns) || (!options.columns.empty() && ends_in(file.string(), {".csv"}))) {
    return open_whole(file, split, options, "a CSV table of images",
                      [&] { return csv_manifest(file, csv_options(options.columns, count)); });
  }
  if (is_tf_record(file)) {
    return open_whole(file, split, options, "TFRecords",
                      [&] { return tf_records(file, tf_options(options, Split::kTrain)); });
  }
  refuse_columns(file, "another format", options.columns);
  if (is_npy(file)) return open_whole(file, split, options, "a NumPy array", [&] { return numpy_arrays(file); });
  if (!is_archive(file)) throw not_recognised(file);
  if (is_web_dataset(file)) {
    return open_whole(file, split, options, "a WebDataset archive",
                      [&] { return web_dataset(file, WebDatasetOptions{.label_count = count}); });
  }
  return {.format = "images in the folders of an archive",
          .source = image_archive(file, {.split = split, .layout = options.layout})};
}

struct OpenSourceCall {
  static constexpr const char* kName = "open";

  std::filesystem::path path = {};
  Split split = Split::kTrain;
  SourceOptions options = {};

  void show(OptionVisitor& visit) {
    visit("path", path);
    show_split(split, visit);
    show_layout(options.layout, visit);
    visit("label_count", options.label_count);
    visit("image_column", options.columns.image);
    visit("label_column", options.columns.label);
    visit("columns", options.columns.more);
    show_label_type(options.columns.label_type, visit);
  }
  SourcePtr open() const { return open_source(path, split, options); }
};

OpenedSource recognise(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  switch (path_kind(path)) {
    case PathKind::kDirectory: return open_folder(path, split, options);
    case PathKind::kFile: return open_file(path, split, options);
    case PathKind::kMissing:
      throw DataError(ErrorCode::kNotFound, "there is no such file or folder" + did_you_mean_path(path),
                      {.source = path.string()}, accepted_formats());
    case PathKind::kPipe:
      refuse_columns(path, "a pipe's archive", options.columns);
      return open_whole(path, split, options, "a WebDataset archive through a pipe",
                        [&] { return web_stream(path, {.label_count = options.label_count}); });
    case PathKind::kOther: break;
  }
  throw DataError(ErrorCode::kUnsupported, "is neither a file nor a folder", {.source = path.string()},
                  accepted_formats());
}

}  // namespace

Split parse_split(const std::string& name) {
  if (name == "train") return Split::kTrain;
  if (name == "test") return Split::kTest;
  throw ConfigError("there is no split '" + name + "'", "use train or test");
}

LabelType parse_label_type(const std::string& name) {
  if (name == "auto") return LabelType::kAuto;
  if (name == "class") return LabelType::kClass;
  if (name == "number") return LabelType::kNumber;
  throw ConfigError("there is no label type '" + name + "'", "take auto, class or number");
}

OpenedSource recognise_source(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  OpenedSource opened = recognise(path, split, options);
  opened.source = opened_by(OpenSourceCall{.path = path, .split = split, .options = options}, opened.source);
  return opened;
}

SourcePtr open_source(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  return recognise_source(path, split, options).source;
}

SourceOriginPtr open_source_origin() { return std::make_shared<const CallOrigin<OpenSourceCall>>(); }

}  // namespace headrace
