// Sources opened by their path.
#include "headrace/pipeline/sources.h"

#include <fmt/format.h>

#include <array>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

using Paths = std::vector<std::filesystem::path>;

// The members that only some formats use.
enum OpenMember : unsigned {
  kLayout = 1,
  kLabelCount = 2,
  kMemoryLimit = 4,
  kClasses = 8,
  kColumns = 16,
  kKeys = 32,
  kFingerprint = 64,
  kImageBytes = 128,
  kSplit = 256,
  kFurther = 512,
  kBeside = 1024,  // of the members of kFurther only the columns
};

// The paths to open, and how to open them.
struct Opening {
  const Paths& paths;
  const hr_open_options& options;

  const std::filesystem::path& path() const { return paths.front(); }
  Split split() const { return enum_of(options.split, Split::kTest, "split"); }
  std::vector<std::string> classes() const { return texts_of(options.classes, options.class_count, "classes"); }
  LayoutOptions layout() const {
    return {.classes_at = text_of(options.classes_at),
            .train_folder = text_of(options.train_folder),
            .test_folder = text_of(options.test_folder)};
  }
  std::vector<std::string> columns() const { return texts_of(options.columns, options.column_count, "columns"); }
  LabelType label_type() const { return enum_of(options.label_type, LabelType::kNumber, "label_type"); }
  template <typename Options>
  std::uint64_t memory_limit() const {
    return options.memory_limit != 0 ? options.memory_limit : Options{}.memory_limit;
  }
};

SourcePtr open_archive(const Opening& at) {
  return image_archive(at.path(), {.split = at.split(),
                                   .memory_limit = at.memory_limit<ArchiveOptions>(),
                                   .layout = at.layout(),
                                   .columns = at.columns()});
}

SourcePtr open_web_dataset(const Opening& at) {
  WebDatasetOptions options{.split = at.split(),
                            .classes = at.classes(),
                            .label_count = at.options.label_count,
                            .memory_limit = at.memory_limit<WebDatasetOptions>(),
                            .image_member = text_of(at.options.path_column),
                            .label_member = text_of(at.options.label_column),
                            .members = at.columns(),
                            .label_type = at.label_type()};
  return at.paths.size() == 1 ? web_dataset(at.path(), std::move(options))
                              : web_dataset(at.paths, std::move(options));
}

SourcePtr open_csv(const Opening& at) {
  const CsvOptions defaults;
  return csv_manifest(at.path(), {.path_column = text_of(at.options.path_column, defaults.path_column.c_str()),
                                  .label_column = text_of(at.options.label_column, defaults.label_column.c_str()),
                                  .label_count = at.options.label_count,
                                  .columns = at.columns(),
                                  .label_type = at.label_type()});
}

SourcePtr open_tf_records(const Opening& at) {
  TfRecordOptions options{.split = at.split(),
                          .classes = at.classes(),
                          .label_count = at.options.label_count,
                          .memory_limit = at.memory_limit<TfRecordOptions>(),
                          .feature_keys = at.columns(),
                          .label_type = at.label_type()};
  if (at.options.image_key_count > 0)
    options.image_keys = texts_of(at.options.image_keys, at.options.image_key_count, "image_keys");
  if (at.options.label_key_count > 0)
    options.label_keys = texts_of(at.options.label_keys, at.options.label_key_count, "label_keys");
  return at.paths.size() == 1 ? tf_records(at.path(), std::move(options))
                              : tf_records(at.paths, std::move(options));
}

SourcePtr open_web_stream(const Opening& at) {
  WebStreamOptions options{
      .classes = at.classes(), .label_count = at.options.label_count, .fingerprint = at.options.fingerprint};
  if (at.options.max_image_bytes != 0) options.max_image_bytes = at.options.max_image_bytes;
  return web_stream(at.path(), std::move(options));
}

// Indexed by HR_FORMAT_..., except HR_FORMAT_AUTO.
struct Format {
  const char* name;
  SourcePtr (*open)(const Opening&);
  unsigned members;
  std::size_t min_paths = 1, max_paths = 1;
};
constexpr std::size_t kAnyNumber = ~std::size_t{0};

const std::array<Format, 12> kFormats{{
    {"the recognised format", nullptr, kSplit | kLayout | kLabelCount | kFurther},
    {"IDX files", [](const Opening& at) { return idx_folder(at.path(), at.split(), at.options.label_count); },
     kSplit | kLabelCount},
    {"CIFAR binaries", [](const Opening& at) { return cifar_binary(at.path(), at.split()); }, kSplit},
    {"images in folders",
     [](const Opening& at) {
       return image_folder(at.path(), at.split(), at.layout(),
                           {.columns = at.columns(), .label_type = at.label_type()});
     },
     kSplit | kLayout | kFurther},
    {"images in an archive", open_archive, kSplit | kLayout | kMemoryLimit | kBeside},
    {"WebDataset", open_web_dataset, kSplit | kLabelCount | kMemoryLimit | kClasses | kColumns | kFurther, 1,
     kAnyNumber},
    {"a CSV list", open_csv, kLabelCount | kColumns | kFurther},
    {"TFRecords", open_tf_records, kSplit | kLabelCount | kMemoryLimit | kClasses | kKeys | kFurther, 1,
     kAnyNumber},
    {"NumPy arrays",
     [](const Opening& at) {
       return numpy_arrays(at.path(), {.split = at.split(), .memory_limit = at.memory_limit<NumpyOptions>()});
     },
     kSplit | kMemoryLimit},
    {"a record file", [](const Opening& at) { return record_file(at.path(), at.split()); }, kSplit},
    {"a pair of IDX files",
     [](const Opening& at) { return idx_files(at.paths[0], at.paths[1], at.options.label_count); }, kLabelCount, 2,
     2},
    {"a WebDataset stream", open_web_stream, kLabelCount | kClasses | kFingerprint | kImageBytes},
}};

// Returns the first member that is set although the format does not use it; null if there is none.
const char* find_useless(const hr_open_options& options, unsigned useful) {
  const auto useless = [useful](unsigned member, bool set) { return set && (useful & member) == 0; };
  if (useless(kSplit, options.split != HR_TRAIN)) return "split";
  if (useless(kLayout, options.classes_at != nullptr)) return "classes_at";
  if (useless(kLayout, options.train_folder != nullptr)) return "train_folder";
  if (useless(kLayout, options.test_folder != nullptr)) return "test_folder";
  if (useless(kLabelCount, options.label_count != 0)) return "label_count";
  if (useless(kMemoryLimit, options.memory_limit != 0)) return "memory_limit";
  if (useless(kClasses, options.class_count != 0)) return "classes";
  if (useless(kColumns, options.path_column != nullptr)) return "path_column";
  if (useless(kColumns, options.label_column != nullptr)) return "label_column";
  if (useless(kKeys, options.image_key_count != 0)) return "image_keys";
  if (useless(kKeys, options.label_key_count != 0)) return "label_keys";
  if (useless(kFurther | kBeside, options.column_count != 0)) return "columns";
  if (useless(kFurther, options.label_type != HR_LABEL_AUTO)) return "label_type";
  if (useless(kFingerprint, options.fingerprint != 0)) return "fingerprint";
  if (useless(kImageBytes, options.max_image_bytes != 0)) return "max_image_bytes";
  return nullptr;
}

OpenedSource open_any(const Opening& at) {
  const std::int32_t number = at.options.format;
  if (number < 0 || static_cast<std::size_t>(number) >= kFormats.size()) {
    throw ConfigError(fmt::format("format = {} is none of its values", number), "see HR_FORMAT_... in headrace.h");
  }
  const Format& format = kFormats[static_cast<std::size_t>(number)];
  if (at.paths.size() < format.min_paths || at.paths.size() > format.max_paths) {
    throw ConfigError(fmt::format("{} paths for {}", at.paths.size(), format.name),
                      format.min_paths == 1 ? "give one path" : "give the images' path and the labels'");
  }
  if (const char* member = find_useless(at.options, format.members); member != nullptr) {
    throw ConfigError(fmt::format("{} has no use for {} when it is opened", format.name, member),
                      number == HR_FORMAT_AUTO ? "say which format it is" : "leave it as the macro sets it");
  }
  if (format.open == nullptr) {
    return recognise_source(at.path(), at.split(),
                            {.layout = at.layout(),
                             .label_count = at.options.label_count,
                             .columns = {.columns = at.columns(), .label_type = at.label_type()}});
  }
  return {.format = format.name, .source = format.open(at)};
}

hr_source* open_handle(const Paths& paths, const hr_open_options* options) {
  const hr_open_options how = HR_READ(hr_open_options, HR_OPEN_OPTIONS_INIT, options);
  OpenedSource opened = open_any({.paths = paths, .options = how});
  std::string left_out = describe(opened.source->info().left_out);
  const std::string columns = describe(opened.source->info().columns);
  if (!left_out.empty() && !columns.empty()) left_out += "; ";
  left_out += columns;
  std::string reading = describe_reading(*opened.source);
  return new hr_source{.source = std::move(opened.source),
                       .format = std::move(opened.format),
                       .left_out = std::move(left_out),
                       .reading = std::move(reading)};
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_source_open(const char* path, const hr_open_options* options, hr_source** source) {
  return guarded(__func__, [&] {
    hr_source*& result = given(source, "source");
    result = headrace::c::open_handle({&given(path, "path")}, options);
  });
}

hr_status hr_source_open_all(const char* const* paths, size_t count, const hr_open_options* options,
                             hr_source** source) {
  return guarded(__func__, [&] {
    hr_source*& result = given(source, "source");
    headrace::c::Paths list;
    for (std::string& path : headrace::c::texts_of(paths, count, "paths")) list.emplace_back(std::move(path));
    result = headrace::c::open_handle(list, options);
  });
}

hr_status hr_source_describe(const hr_source* source, hr_source_info* info) {
  return guarded(__func__, [&] {
    const hr_source& known = given(source, "source");
    const headrace::SourceInfo& about = known.source->info();
    hr_source_info answer = HR_SOURCE_INFO_INIT;
    answer.name = about.name.c_str();
    answer.format = known.format.c_str();
    answer.records = about.streamed ? HR_UNKNOWN : about.records;
    answer.field_count = about.fields.size();
    answer.class_count = about.classes.size();
    answer.label_count = about.label_count;
    answer.fingerprint = about.fingerprint;
    answer.left_out = known.left_out.c_str();
    answer.resident = about.resident;
    answer.streamed = about.streamed;
    answer.reading = known.reading.c_str();
    headrace::c::write_struct(info, answer, "hr_source_info", "HR_SOURCE_INFO_INIT");
  });
}

hr_status hr_source_field(const hr_source* source, size_t index, hr_field* field) {
  return guarded(__func__, [&] {
    const headrace::Fields& fields = given(source, "source").source->info().fields;
    headrace::c::check_index(index, fields.size(), "field");
    given(field, "field") = headrace::c::describe(fields[index], fields[index].name.c_str());
  });
}

hr_status hr_source_class(const hr_source* source, size_t index, const char** name) {
  return guarded(__func__, [&] {
    const std::vector<std::string>& classes = given(source, "source").source->info().classes;
    headrace::c::check_index(index, classes.size(), "class");
    given(name, "name") = classes[index].c_str();
  });
}

void hr_source_free(hr_source* source) { delete source; }
