#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/pipeline/sources/formats.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

// Layout options apply only to images in folders: an option without effect is refused.
void refuse_layout(const std::filesystem::path& path, const std::string& format, const LayoutOptions& layout) {
  if (layout.empty()) return;
  throw ConfigError(
      path.string() + ": holds " + format + ", whose classes and splits no folders name",
      joined({"leave out " + named("LayoutOptions::classes_at"), named("LayoutOptions::train_folder")}, ", ") +
          " and " + named("LayoutOptions::test_folder"));
}

// Returns "CSV tables, TFRecords and images in folders": the formats that have columns.
std::string formats_with_columns() {
  std::vector<std::string_view> names;
  for (const SourceFormat& format : source_formats()) {
    if (format.takes_columns) names.emplace_back(format.name);
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// Column options also need a format with columns.
void refuse_columns(const std::filesystem::path& path, const std::string& format, const ColumnOptions& columns) {
  if (columns.empty()) return;
  throw ConfigError(
      path.string() + ": holds " + format + "; only " + formats_with_columns() + " have columns to choose from",
      joined({"leave out " + named("ColumnOptions::image_column"), named("ColumnOptions::label_column"),
              named("ColumnOptions::label_type"), named("ColumnOptions::columns")},
             ", "));
}

void refuse_stream_of(const std::filesystem::path& path, const std::string& format) {
  throw ConfigError(fmt::format("{}: holds {}; only WebDataset archives and TFRecords are read without an index",
                                path.string(), format),
                    advice("leave out {}", named("SourceOptions::indexed", "false")));
}

void refuse_second_split(const std::filesystem::path& file) {
  throw ConfigError(
      file.string() + ": one file has no two splits: all of it is the train split",
      joined({"name the file of the test split", advice("read all of it with {}", named("split", "train"))}));
}

OpenedSource open_as(const SourceFormat& format, const SourceForm& form, const FoundPath& found, Split split) {
  const std::filesystem::path& path = found.path();
  const SourceOptions& options = found.options();
  const bool of_shards = format.takes_folders && options.layout.classes_at.empty() && form.has_splits;
  if (!format.takes_layout && !of_shards) refuse_layout(path, form.name, options.layout);
  if (!format.takes_columns) refuse_columns(path, form.name, options.columns);
  if (!format.takes_folders && !options.indexed) refuse_stream_of(path, form.name);
  if (!form.has_splits && split == Split::kTest) refuse_second_split(path);
  SourcePtr source = form.open(path, split, options);
  if (source == nullptr) return {};
  return {.format = form.name, .source = with_format(std::move(source), form.name)};
}

[[noreturn]] void refuse(const FoundPath& found) {
  const std::filesystem::path& path = found.path();
  switch (found.kind()) {
    case PathKind::kFile:
      refuse_columns(path, "another format", found.options().columns);
      throw not_recognised(path);
    case PathKind::kMissing:
      throw DataError(ErrorCode::kNotFound, "there is no such file or folder" + did_you_mean_path(path),
                      {.source = path.string()}, accepted_formats());
    default:
      throw DataError(ErrorCode::kUnsupported, "is neither a file nor a folder", {.source = path.string()},
                      accepted_formats());
  }
}

OpenedSource recognise(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  const remote::Hold hold;
  const FoundPath found(path, options);
  for (const SourceFormat& format : source_formats()) {
    for (const SourceForm& form : format.forms) {
      if (form.kind != found.kind() || !form.recognise(found)) continue;
      if (OpenedSource opened = open_as(format, form, found, split); opened.source != nullptr) return opened;
    }
  }
  refuse(found);
}

}  // namespace

Split parse_split(const std::string& name) {
  if (name == "train") return Split::kTrain;
  if (name == "test") return Split::kTest;
  throw ConfigError("there is no split '" + name + "'", "use train or test");
}

OpenedSource recognise_source(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  OpenedSource opened = recognise(path, split, options);
  opened.source = opened_by(OpenSourceCall{{path, {split, options}}}, opened.source);
  return opened;
}

SourcePtr open_source(const std::filesystem::path& path, Split split, const SourceOptions& options) {
  return recognise_source(path, split, options).source;
}

}  // namespace headrace
