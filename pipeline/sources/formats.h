// The formats that open_source() reads. Each is a row of the table in formats.cpp, from which everything else that
// speaks of formats follows: what a path is recognised as, which options it takes, accepted_formats() in messages
// and help, what `headrace doctor --data` says was found, and the openers that a plan's JSON knows.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

// What lies at a path, for those who recognise it.
class FoundPath {
 public:
  // The options must outlive it.
  FoundPath(std::filesystem::path path, const SourceOptions& options)
      : path_(std::move(path)), kind_(path_kind(path_)), options_(options) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  PathKind kind() const noexcept { return kind_; }
  const SourceOptions& options() const noexcept { return options_; }

  // The files of a folder in order, up to the first folder in it.
  const std::vector<std::filesystem::path>& files() const { return contents().files; }
  bool has_folders() const { return contents().has_folders; }

 private:
  struct Contents {
    std::vector<std::filesystem::path> files;
    bool has_folders = false;
  };

  const Contents& contents() const;  // listed when they are first asked for

  std::filesystem::path path_;
  PathKind kind_;
  const SourceOptions& options_;
  mutable std::optional<Contents> contents_;
};

// One way in which a format lies there.
struct SourceForm {
  PathKind kind;
  const char* name;  // OpenedSource::format, "TFRecord files"
  // Looks at the content; names alone decide only where a folder's files are called as the format has it.
  bool (*recognise)(const FoundPath& found);
  SourcePtr (*open)(const std::filesystem::path& path, Split split, const SourceOptions& options);
  bool has_splits = true;  // false: all of it is the train split
};

struct SourceFormat {
  const char* name;
  const char* accepts;  // what is read: an item of accepted_formats()
  std::vector<SourceForm> forms;
  // Of its functions in sources.h, with the arguments that they have unless they are said; none where
  // open_source() is the only one.
  std::vector<SourceOriginPtr> openers = {};
  bool takes_layout = false;   // LayoutOptions
  bool takes_columns = false;  // ColumnOptions
};

// In the order in which they are tried.
std::span<const SourceFormat> source_formats();

}  // namespace headrace
