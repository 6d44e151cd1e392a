// The call that opened a source, as data: recorded in a plan's JSON and used to reopen it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

// Immutable and thread-safe.
class SourceOrigin {
 public:
  virtual ~SourceOrigin() = default;

  // Returns the opener: "image_folder".
  virtual const char* name() const noexcept = 0;
  // Shows the arguments to the visitor.
  virtual void visit_arguments(OptionVisitor& visit) const = 0;
  // Opens a source with the arguments as the visitor sets them.
  virtual SourcePtr open(OptionVisitor& visit) const = 0;
};

// The origin of a call: `Call` holds the arguments and has kName, each_field(), which shows all of them, and
// open().
template <typename Call>
class CallOrigin final : public SourceOrigin {
 public:
  explicit CallOrigin(Call call = {}) : call_(std::move(call)) {}

  const char* name() const noexcept override { return Call::kName; }
  void visit_arguments(OptionVisitor& visit) const override {
    Call call = call_;
    call.each_field(visit);
  }
  SourcePtr open(OptionVisitor& visit) const override {
    Call call = call_;
    call.each_field(visit);
    return call.open();
  }

 private:
  Call call_;
};

// Returns the source with its origin set. REQUIRES: the source is not yet shared.
SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin);
// Returns the source with its format set. REQUIRES: the source is not yet shared.
SourcePtr with_format(SourcePtr source, std::string format);

template <typename Call>
SourcePtr opened_by(Call call, SourcePtr source) {
  return with_origin(std::move(source), std::make_shared<const CallOrigin<Call>>(std::move(call)));
}

// The calls of sources.h. Their fields are the arguments, as a plan's JSON names them.

// A call that opens a path with options.
template <typename Options, typename Path = std::filesystem::path>
struct PathCall {
  Path path = {};
  Options options = {};

  void each_field(OptionVisitor& visit) {
    visit("path", path, source_sentences::kPath);
    options.each_field(visit);
  }
};
using Paths = std::vector<std::filesystem::path>;

// The arguments of calls that have no options struct of their own.
struct SplitArgument {
  Split split = Split::kTrain;

  void each_field(OptionVisitor& visit) { visit("split", split, source_sentences::kSplit); }
};
struct IdxArguments {
  Split split = Split::kTrain;
  std::uint64_t label_count = 0;

  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    visit("label_count", label_count, source_sentences::kLabelCount);
  }
};
struct ImageFolderArguments {
  Split split = Split::kTrain;
  LayoutOptions layout = {};
  ColumnOptions columns = {};  // those with an image or a label are refused

  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    layout.each_field(visit);
    visit("columns", columns.columns, source_sentences::kColumns);
  }
};
struct CsvTableArguments {
  CsvOptions options = {};

  void each_field(OptionVisitor& visit) { options.each_field_without_images(visit); }
};
struct OpenArguments {
  Split split = Split::kTrain;
  SourceOptions options = {};

  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    options.each_field(visit);
  }
};

struct OpenSourceCall : PathCall<OpenArguments> {
  static constexpr const char* kName = "open";
  SourcePtr open() const { return open_source(path, options.split, options.options); }
};
struct ImageFolderCall : PathCall<ImageFolderArguments> {
  static constexpr const char* kName = "image_folder";
  SourcePtr open() const { return image_folder(path, options.split, options.layout, options.columns); }
};
struct ImageArchiveCall : PathCall<ArchiveOptions> {
  static constexpr const char* kName = "image_archive";
  SourcePtr open() const { return image_archive(path, options); }
};
// Of one path, a file or a folder, or of several files.
struct WebDatasetCall : PathCall<WebDatasetOptions, Paths> {
  static constexpr const char* kName = "web_dataset";
  SourcePtr open() const { return path.size() == 1 ? web_dataset(path[0], options) : web_dataset(path, options); }
};
struct TfRecordsCall : PathCall<TfRecordOptions, Paths> {
  static constexpr const char* kName = "tf_records";
  SourcePtr open() const { return path.size() == 1 ? tf_records(path[0], options) : tf_records(path, options); }
};
struct WebStreamCall : PathCall<WebStreamOptions> {
  static constexpr const char* kName = "web_stream";
  SourcePtr open() const { return web_stream(path, options); }
};
struct CsvManifestCall : PathCall<CsvOptions> {
  static constexpr const char* kName = "csv_manifest";
  SourcePtr open() const { return csv_manifest(path, options); }
};
struct CsvTableCall : PathCall<CsvTableArguments> {
  static constexpr const char* kName = "csv_table";
  SourcePtr open() const { return csv_table(path, options.options); }
};
struct NumpyArraysCall : PathCall<NumpyOptions> {
  static constexpr const char* kName = "numpy_arrays";
  SourcePtr open() const { return numpy_arrays(path, options); }
};
struct RecordFileCall : PathCall<SplitArgument> {
  static constexpr const char* kName = "record_file";
  SourcePtr open() const { return record_file(path, options.split); }
};
struct CifarBinaryCall : PathCall<SplitArgument> {
  static constexpr const char* kName = "cifar_binary";
  SourcePtr open() const { return cifar_binary(path, options.split); }
};
struct IdxFolderCall : PathCall<IdxArguments> {
  static constexpr const char* kName = "idx_folder";
  SourcePtr open() const { return idx_folder(path, options.split, options.label_count); }
};
struct IdxFilesCall {
  static constexpr const char* kName = "idx_files";

  std::filesystem::path images = {}, labels = {};
  std::uint64_t label_count = 0;

  void each_field(OptionVisitor& visit) {
    visit("images", images, "The IDX file of the images.");
    visit("labels", labels, "The IDX file of the labels.");
    visit("label_count", label_count, source_sentences::kLabelCount);
  }
  SourcePtr open() const { return idx_files(images, labels, label_count); }
};

// Returns one origin per opener, open_source() first, with default arguments: those in the table of formats
// (formats.cpp).
std::span<const SourceOriginPtr> source_origins();
// Returns the origin of this name; null if there is none.
SourceOriginPtr find_source_origin(std::string_view name);

}  // namespace headrace
