#include "headrace/pipeline/sources/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/arrays/array_formats.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/images/archive_images.h"
#include "headrace/pipeline/sources/images/sidecars.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/record_file.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/records/tf_records.h"
#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/split_names.h"
#include "headrace/pipeline/sources/tables/csv_manifest.h"

namespace headrace {

namespace {

using Path = std::filesystem::path;
using Options = SourceOptions;

bool any_ends_in(const FoundPath& found, const char* ending) {
  return std::ranges::any_of(found.files(), [&](const auto& file) { return file.string().ends_with(ending); });
}

bool has_images(const FoundPath& found) {
  return std::ranges::any_of(found.files(), [](const auto& file) { return is_image_path(file.string()); });
}

bool anything(const FoundPath&) { return true; }

template <bool (*recognise)(const std::filesystem::path&)>
bool by_path(const FoundPath& found) {
  return recognise(found.path());
}

bool is_idx_folder(const FoundPath& found) {
  return std::ranges::any_of(std::array{"train-images", "t10k-images"},
                             [&](const char* stem) { return !find_idx(found.path(), stem, 3).empty(); });
}

bool is_cifar_folder(const FoundPath& found) {
  if (find_cifar(found.path()) != CifarFormat::kNone) return true;
  NameList pickles;
  for (const char* name : {"data_batch_1", "test_batch", "train", "test", "meta"}) {
    if (path_kind(found.path() / name) == PathKind::kFile) pickles.add(name);
  }
  refuse_cifar_pickles(pickles, found.path().string());
  return false;
}

bool is_table(const FoundPath& found) { return is_csv_table(found.path(), found.options().columns); }

// Callers who name columns mean a table: the error is the column it lacks.
bool is_image_table(const FoundPath& found) {
  const ColumnOptions& columns = found.options().columns;
  return is_csv_manifest(found.path(), columns) || (!columns.empty() && found.path().string().ends_with(".csv"));
}

bool is_record_folder(const FoundPath& found) {
  const auto shard = std::ranges::find_if(found.files(), is_record_shard);
  return shard != found.files().end() && !has_images(found) && is_record_file(*shard);
}

bool is_tf_folder(const FoundPath& found) { return has_shards(found.path(), is_tf_shard); }

// A folder with a .zip beside images is not read from the .zip.
bool is_web_folder(const FoundPath& found) {
  const bool zips = !has_images(found);
  return has_shards(found.path(), [&](const Path& file) {
    return is_web_shard(file) || (zips && file.native().ends_with(".zip"));
  });
}

// Callers who name the folders of classes mean images in these, whatever lies beside them.
bool is_web_archive(const FoundPath& found) {
  if (!is_archive(found.path()) || !found.options().layout.empty()) return false;
  const ColumnOptions& columns = found.options().columns;
  if (!columns.image_column.empty() || !columns.label_column.empty()) return true;
  const MemberFields fields(columns.columns, found.path().string());
  if (std::ranges::any_of(fields.extensions(), is_path_pattern)) return false;  // of paths in folders
  return is_web_dataset(found.path(), web_members(columns, fields.extensions(), found.path().string()));
}

bool is_numpy_folder(const FoundPath& found) {
  return !found.has_folders() && !has_images(found) && any_ends_in(found, ".npy");
}

template <typename... Calls>
std::vector<SourceOriginPtr> openers() {
  return {std::make_shared<const CallOrigin<Calls>>()...};
}

TfRecordOptions tf_record_options(Split split, const SourceOptions& options) {
  TfRecordOptions how{.split = split,
                      .label_count = options.label_count,
                      .feature_keys = options.columns.columns,
                      .label_type = options.columns.label_type,
                      .layout = options.layout,
                      .indexed = options.indexed};
  if (!options.columns.image_column.empty()) how.image_keys = {options.columns.image_column};
  if (!options.columns.label_column.empty()) how.label_keys = {options.columns.label_column};
  return how;
}

SourcePtr open_cifar(const Path& path, Split split, const Options&) { return cifar_binary(path, split); }
SourcePtr open_csv(const Path& path, Split, const Options& options) {
  return csv_manifest(path, csv_options(options.columns, options.label_count));
}
SourcePtr open_csv_table(const Path& path, Split, const Options& options) {
  return csv_table(path, csv_options(options.columns, options.label_count));
}
SourcePtr open_idx(const Path& path, Split split, const Options& options) {
  return idx_folder(path, split, options.label_count);
}
// Null where every image has a label beside it: then they are samples of WebDataset.
SourcePtr open_image_archive(const Path& path, Split split, const Options& options) {
  refuse_named_columns(path, options.columns);
  try {
    return recognised_image_archive(
        path, {.split = split, .layout = options.layout, .columns = options.columns.columns});
  } catch (const SamplesNotImages& found) {
    if (!found.are_all()) throw;
    return nullptr;
  }
}
SourcePtr open_image_folder(const Path& path, Split split, const Options& options) {
  return image_folder(path, split, options.layout, options.columns);
}
SourcePtr open_numpy(const Path& path, Split split, const Options&) {
  return numpy_arrays(path, {.split = split});
}
SourcePtr open_record_file(const Path& path, Split split, const Options&) { return record_file(path, split); }
SourcePtr open_tf_records(const Path& path, Split split, const Options& options) {
  return tf_records(path, tf_record_options(split, options));
}
SourcePtr open_web_dataset(const Path& path, Split split, const Options& options) {
  const ColumnOptions& columns = options.columns;
  return web_dataset(path, WebDatasetOptions{.split = split,
                                             .label_count = options.label_count,
                                             .image_member = columns.image_column,
                                             .label_member = columns.label_column,
                                             .members = columns.columns,
                                             .label_type = columns.label_type,
                                             .layout = options.layout,
                                             .indexed = options.indexed});
}
SourcePtr open_web_stream(const Path& path, Split, const Options& options) {
  if (!options.columns.empty()) {
    throw ConfigError(
        path.string() + ": members cannot be chosen in a pipe, whose samples are not known beforehand",
        "write the archive to a file");
  }
  return web_stream(path, {.label_count = options.label_count});
}

}  // namespace

// The first row that recognises a path opens it: formats with a signature precede those recognised by names, and
// images, as the fallback, come last.
std::span<const SourceFormat> source_formats() {
  constexpr PathKind kFolder = PathKind::kDirectory, kFile = PathKind::kFile;
  static const std::vector<SourceFormat> formats{
      {.name = "record files",
       .accepts = "record files of headrace convert, also a folder of them",
       .forms = {{kFile, "records", by_path<is_record_file>, open_record_file},
                 {kFolder, "record files", is_record_folder, open_record_file}},
       .openers = openers<RecordFileCall>()},
      {.name = "CSV tables",
       .accepts = "a .csv with the columns path and label, or label and numbers",
       .forms = {{kFile, "a CSV table", is_table, open_csv_table, /*has_splits=*/false},
                 {kFile, "a CSV table of images", is_image_table, open_csv, /*has_splits=*/false}},
       .openers = openers<CsvManifestCall, CsvTableCall>(),
       .takes_columns = true},
      {.name = "IDX files",
       .accepts = "MNIST's IDX files in a folder, plain or .gz",
       .forms = {{kFolder, "IDX files", is_idx_folder, open_idx}},
       .openers = openers<IdxFolderCall, IdxFilesCall>()},
      {.name = "CIFAR binaries",
       .accepts = "CIFAR's binary version (.bin) in a folder",
       .forms = {{kFolder, "CIFAR binaries", is_cifar_folder, open_cifar}},
       .openers = openers<CifarBinaryCall>()},
      {.name = "TFRecords",
       .accepts = "TFRecord files, plain, gzip, zlib or zstd",
       .forms = {{kFolder, "TFRecord files", is_tf_folder, open_tf_records},
                 {kFile, "TFRecords", by_path<is_tf_record>, open_tf_records, /*has_splits=*/false}},
       .openers = openers<TfRecordsCall>(),
       .takes_folders = true,
       .takes_columns = true},
      {.name = "WebDataset archives",
       .accepts = "WebDataset shards (.tar, .tar.gz, .tar.zst, .zip)",
       .forms = {{kFolder, "WebDataset archives", is_web_folder, open_web_dataset},
                 {kFile, "a WebDataset archive", is_web_archive, open_web_dataset, /*has_splits=*/false},
                 {PathKind::kPipe, "a WebDataset archive through a pipe", anything, open_web_stream,
                  /*has_splits=*/false}},
       .openers = openers<WebDatasetCall, WebStreamCall>(),
       .takes_folders = true,
       .takes_columns = true},
      {.name = "NumPy arrays",
       .accepts = "NumPy's .npy and .npz",
       .forms = {{kFolder, "NumPy arrays", is_numpy_folder, open_numpy},
                 {kFile, "NumPy arrays", by_path<is_npz>, open_numpy},
                 {kFile, "a NumPy array", by_path<is_npy>, open_numpy, /*has_splits=*/false}},
       .openers = openers<NumpyArraysCall>()},
      {.name = "images in folders",
       .accepts = "folders of images by class, or train/ and test/ of them; such images in a .tar, .tar.gz, "
                  ".tar.zst or .zip",
       .forms = {{kFolder, "images in folders", anything, open_image_folder},
                 {kFile, "images in the folders of an archive", by_path<is_archive>, open_image_archive},
                 {kFile, "a WebDataset archive", by_path<is_archive>, open_web_dataset, /*has_splits=*/false}},
       .openers = openers<ImageFolderCall, ImageArchiveCall>(),
       .takes_layout = true,
       .takes_columns = true},
  };
  return formats;
}

const FoundPath::Contents& FoundPath::contents() const {
  if (contents_) return *contents_;
  contents_.emplace();
  for (const DirectoryEntry& entry : list_directory(path_)) {
    refuse_unfinished(entry);
    if (is_hidden_name(entry.path.filename().native())) continue;
    contents_->has_folders = contents_->has_folders || entry.is_directory;
    if (!entry.is_directory) contents_->files.push_back(entry.path);
  }
  return *contents_;
}

// The most likely format comes first.
std::string accepted_formats() {
  std::vector<const char*> items;
  for (const SourceFormat& format : source_formats() | std::views::reverse) items.push_back(format.accepts);
  return fmt::format("Headrace reads: {}", fmt::join(items, "; "));
}

std::span<const SourceOriginPtr> source_origins() {
  static const std::vector<SourceOriginPtr> origins = [] {
    std::vector<SourceOriginPtr> all = openers<OpenSourceCall>();
    for (const SourceFormat& format : source_formats()) {
      all.insert(all.end(), format.openers.begin(), format.openers.end());
    }
    return all;
  }();
  return origins;
}

SourceOriginPtr find_source_origin(std::string_view name) {
  const auto found = std::ranges::find_if(source_origins(), [&](const auto& one) { return one->name() == name; });
  return found == source_origins().end() ? nullptr : *found;
}

}  // namespace headrace
