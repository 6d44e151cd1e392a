// The formats that open_source() reads. Each is a row of the table in formats.cpp, which determines everything
// else about formats: how a path is recognised, which options it takes, accepted_formats() in messages and help,
// what `headrace doctor --data` reports as found, and the openers that a plan's JSON knows.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

// A path and its contents, for the recognising functions.
class FoundPath {
 public:
  // REQUIRES: the options outlive it.
  FoundPath(std::filesystem::path path, const SourceOptions& options)
      : path_(std::move(path)), kind_(path_kind(path_)), options_(options) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  PathKind kind() const noexcept { return kind_; }
  const SourceOptions& options() const noexcept { return options_; }

  // Returns the files of a folder in order. Hidden ones (split_names.h) do not count, nor do hidden folders.
  const std::vector<std::filesystem::path>& files() const { return contents().files; }
  bool has_folders() const { return contents().has_folders; }

 private:
  struct Contents {
    std::vector<std::filesystem::path> files;
    bool has_folders = false;
  };

  const Contents& contents() const;  // listed on first use

  std::filesystem::path path_;
  PathKind kind_;
  const SourceOptions& options_;
  mutable std::optional<Contents> contents_;
};

// One form in which a format is stored.
struct SourceForm {
  PathKind kind;
  const char* name;  // OpenedSource::format, "TFRecord files"
  // Looks at the content; names alone decide only if a folder's files are named as the format prescribes.
  bool (*recognise)(const FoundPath& found);
  // Returns null if the content turns out to be of the next form that is_archive().
  SourcePtr (*open)(const std::filesystem::path& path, Split split, const SourceOptions& options);
  bool has_splits = true;  // false: all of it is the train split
};

struct SourceFormat {
  const char* name;
  const char* accepts;  // what is read: an item of accepted_formats()
  std::vector<SourceForm> forms;
  // Its functions in sources.h, with their default arguments; none if open_source() is the only one.
  std::vector<SourceOriginPtr> openers = {};
  bool takes_layout = false;   // LayoutOptions
  bool takes_folders = false;  // of these train_folder and test_folder
  bool takes_columns = false;  // ColumnOptions
};

// Returns the formats in the order in which they are tried.
std::span<const SourceFormat> source_formats();

}  // namespace headrace
