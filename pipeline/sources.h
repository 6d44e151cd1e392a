// The available sources. Each opens at once or fails at once, naming the path and what it expected.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/source.h"

namespace HEADRACE_API headrace {

// Receives the fields of one record from a generator's function. Lives for one call of the function; every field
// is written once, in any order.
class RecordWriter {
 public:
  // `buffer` is reused from record to record.
  RecordWriter(const Fields& fields, std::vector<std::byte>& buffer) : fields_(&fields), buffer_(&buffer) {}

  // Returns uninitialised room for field number `field`, to be filled before the next call of any method. A field
  // of fixed shape has exactly its elements; one of varying first extent a whole number of entries. Throws
  // ConfigError if `bytes` is neither, or if the field was written before.
  std::span<std::byte> allocate(std::size_t field, std::size_t bytes);
  void put(std::size_t field, std::span<const std::byte> bytes);
  // Writes the elements of a field, or the single value of a scalar.
  template <typename Value>
  requires std::is_arithmetic_v<Value>
  void put(std::size_t field, Value value) { put(field, std::as_bytes(std::span(&value, 1))); }

  // Returns the fields written. Throws ConfigError naming one that was not.
  RecordView view() const;

 private:
  struct Place {
    std::size_t offset = 0, size = 0;
    bool written = false;
  };

  const Fields* fields_;
  std::vector<std::byte>* buffer_;
  std::size_t used_ = 0;
  PerField<Place> places_;
};

// One field of an in-memory dataset: `bytes` holds `records` times field.shape elements, back to back.
struct Array {
  Field field;
  std::vector<std::byte> bytes;
};
// Returns a source of arrays of equal length. Throws ConfigError if the lengths differ.
SourcePtr in_memory(std::string name, std::uint64_t records, std::vector<Array> arrays);

// Like Array, but the bytes belong to the caller, who keeps them unchanged while the source lives.
struct BorrowedArray {
  Field field;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner = {};  // kept as long as the source; null: the caller keeps the bytes
};
SourcePtr borrowed_arrays(std::string name, std::uint64_t records, std::vector<BorrowedArray> arrays,
                          std::vector<std::string> classes = {});

// "train" or "test": the half of a dataset that has two.
enum class Split { kTrain, kTest };
constexpr std::array<const char*, 2> choice_names(Split /*of*/) { return {"train", "test"}; }
Split parse_split(const std::string& name);

// Opens a folder with MNIST's four files (train-images-idx3-ubyte ...), plain or .gz, resident. Elements may be of
// any IDX type: signed bytes and shorts become i32, doubles f32 (rounded to nearest). `label_count` as in
// SourceInfo; 0: the format does not say how many classes there are. Fields: image u8 (28, 28, 1), label i64.
SourcePtr idx_folder(const std::filesystem::path& folder, Split split, std::uint64_t label_count = 0);
// Opens one pair of IDX files: images of one to six axes, the first counting the records (a record of two gets a
// channel), and labels, integers of one axis.
SourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels,
                    std::uint64_t label_count = 0);

// Opens a folder with CIFAR-10's data_batch_1..5.bin and test_batch.bin (or CIFAR-100's train.bin, test.bin: fine
// labels), resident. Fields: image u8 (32, 32, 3), label i64.
SourcePtr cifar_binary(const std::filesystem::path& folder, Split split);

// The reading of labels. kAuto: integers, or the names of classes; numbers that are not whole are refused, as they
// may be either of the others. kClass: each value that occurs is a class, numbers in numeric order, names in
// bytewise order. kNumber: float32, to be predicted as they are: regression.
enum class LabelType { kAuto, kClass, kNumber };
constexpr std::array<const char*, 3> choice_names(LabelType /*of*/) { return {"auto", "class", "number"}; }

// Explain the options that several sources have.
namespace source_sentences {
inline constexpr const char* kPath = "A file or folder, or a URL.";
inline constexpr const char* kSplit = "The part of the data that is read.";
inline constexpr const char* kClasses = "The names of the classes, where the format does not have them.";
inline constexpr const char* kLabelCount =
    "How many classes there are, where the data do not say; a label not below it is bad. 0: unknown.";
inline constexpr const char* kLabelType =
    "How labels are read: each value as a class, or as a number to be predicted, float32; auto takes whole "
    "numbers and names of classes, and refuses other numbers.";
inline constexpr const char* kIndexed =
    "False: shards are read one after another, or as shuffle_shards() says, and no pass over all of them comes "
    "first: the data are a stream that can be read again, whose length is known at the end of an epoch.";
inline constexpr const char* kMemoryLimit = "The maximum of memory for unpacked or converted data, in bytes.";
inline constexpr const char* kColumns =
    "Further columns, features, members of samples or files beside images that become fields: "
    "[FIELD=]COLUMN[+COLUMN...][:TYPE], as in caption:text, breed:class, pixels:list, size=width+height, "
    "seg.png:mask, boxes=json.boxes:list, mask=../masks/{stem}_mask.png:mask.";
}  // namespace source_sentences

// Selects the columns of a table, features of TFRecords, members of WebDataset's samples, or files beside those of
// an image folder. Members and files are named by their extension, "seg.png", values in JSON by their keys,
// "json.box" or "json.size.width".
struct ColumnOptions {
  std::string image_column = {};
  std::string label_column = {};
  // FIELD is the field's name if it is not the column's. Types: number, in a table i64 if all are written as
  // integers, else f32, several columns a vector; list, numbers with blanks or commas between them; class,
  // numbered like labels; text, its bytes (u8), with zeros after them up to the longest. Without a type it is
  // number, or in TFRecords what the feature holds. Of images in folders also by a pattern of their paths, {stem}
  // being the image's name without its extension and {folder} its folder; only of a folder may it lead out of it.
  // Members are images, NumPy arrays (npy), text, or numbers in text or JSON; mask is an image whose numbers are
  // kept, of one channel. Texts, lists, and arrays whose first axis differs are of varying length: padded_batch()
  // pads them.
  std::vector<std::string> columns = {};
  LabelType label_type = LabelType::kAuto;

  bool empty() const noexcept {
    return image_column.empty() && label_column.empty() && columns.empty() && label_type == LabelType::kAuto;
  }
  void each_field(OptionVisitor& visit) {
    visit("image_column", image_column,
          "The column of a table, feature of TFRecords or member of samples that is the image. Empty: path in a "
          "table, image/encoded or image in TFRecords, jpg, jpeg or png in samples.");
    visit(
        "label_column", label_column,
        "The column, feature or member that is the label. Empty: label in a table, image/class/label or label in "
        "TFRecords, cls or else json.label in samples.");
    visit("columns", columns, source_sentences::kColumns);
    visit("label_type", label_type, source_sentences::kLabelType);
  }
};

// Says how to read the folders of an image collection if their names alone do not tell.
struct LayoutOptions {
  std::string classes_at = {};
  std::string train_folder = {};
  std::string test_folder = {};

  bool empty() const noexcept { return classes_at.empty() && train_folder.empty() && test_folder.empty(); }
  void each_field(OptionVisitor& visit) {
    visit(
        "classes_at", classes_at,
        "The folder that names an image's class: its number from the top, parent for the innermost, none where "
        "there are no classes (every label is 0), or a pattern such as photos/*/{class} or {class}/{split}, which "
        "leaves other images out. Empty: recognised.");
    visit("train_folder", train_folder,
          "The folder with the train split, by its name or the end of its path; of shards also how their names "
          "begin, or * for all. Empty: recognised by name.");
    visit("test_folder", test_folder,
          "The folder with the test split, by its name or the end of its path; of shards also how their names "
          "begin, or * for all. Empty: recognised by name.");
  }
};

// Opens images (.jpg, .jpeg, .png) in a folder for each class, `cat/1.jpg`, below any number of folders around
// them, and perhaps with a folder for each split above the classes: train/ or training/, test/ or testing/, val/,
// valid/ or validation/. If the images lie side by side, a prefix `<wnid>_name.JPEG` gives the class. val/ is the
// test split if there is no test/ with classes; without split folders all images are the train split. Labels are
// the classes of all splits in bytewise order; records are in bytewise order of their path. Throws ConfigError
// showing the tree as found and the option to set if it can be read in several ways: images at several depths,
// classes at more than one level, a single class. Fields: image (encoded), label i64, and those of
// columns.columns: files named like an image but for its extension, `cat/1.json` and `cat/1.seg.png` beside
// `cat/1.jpg`; an image without one is a bad record. Throws ConfigError if `columns` names an image or a label.
SourcePtr image_folder(const std::filesystem::path& folder, Split split, const LayoutOptions& layout = {},
                       const ColumnOptions& columns = {});

// Such images in a .tar, .tar.zst, .tar.gz, .tgz or .zip, with the files beside them that `columns` names. A plain
// .tar or a .zip is indexed once and read by position, in a .zip with each image's CRC-32 checked; a compressed
// tar is unpacked into memory when opened, up to `memory_limit` bytes, which also bounds the window of a zstd file
// (beyond 128 MiB). Joined archives (cat a.tar b.tar) are read to the end of the last.
struct ArchiveOptions {
  Split split = Split::kTrain;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  LayoutOptions layout = {};
  std::vector<std::string> columns = {};
  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    layout.each_field(visit);
    visit("memory_limit", memory_limit, source_sentences::kMemoryLimit);
    visit("columns", columns, source_sentences::kColumns);
  }
};
SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options = {});

// Archives (.tar, .tar.zst, .tar.gz, .zip) in WebDataset's naming: `key.jpg|jpeg|png` and, for its label,
// `key.cls` (a decimal number) or `key.json` (the integer "label"). Records are in the order of the archives, then
// of their members. A plain .tar or a .zip is read by position; a compressed tar is unpacked into memory when
// opened. A sample without its image, its label or a chosen member is a bad record. SourceInfo::columns says what
// is left out. Fields: image (encoded), label i64, and those of `members`; if these are chosen, `label_member` is
// not, and no sample has a label, the records have none.
struct WebDatasetOptions {
  // Of a folder the archives whose names or folders say so, as train-*.tar or train/*.tar; all are train if no
  // name says a split. As for TFRecords, names may count the shards (train-00000-of-00004.tar), and then none may
  // be missing.
  Split split = Split::kTrain;
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  std::string image_member = {};
  std::string label_member = {};
  std::vector<std::string> members = {};
  LabelType label_type = LabelType::kAuto;  // kAuto: integers
  LayoutOptions layout = {};                // its train_folder and test_folder
  bool indexed = true;                      // ConfigError if false and classes are to be found in the data
  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    visit("classes", classes, source_sentences::kClasses);
    visit("label_count", label_count, source_sentences::kLabelCount);
    visit("memory_limit", memory_limit, source_sentences::kMemoryLimit);
    visit("image_member", image_member, "The member that is the image; empty: jpg, jpeg or png.");
    visit("label_member", label_member, "The member that is the label; empty: cls, or else json.label.");
    visit("members", members, source_sentences::kColumns);
    visit("label_type", label_type, source_sentences::kLabelType);
    layout.each_field(visit);
    visit("indexed", indexed, source_sentences::kIndexed);
  }
};
// Opens one archive, or a folder of archives.
SourcePtr web_dataset(const std::filesystem::path& path, WebDatasetOptions options = {});
SourcePtr web_dataset(std::vector<std::filesystem::path> archives, WebDatasetOptions options = {});

// A table of image files: the first line names the columns, among them path and label. Paths are relative to the
// table's folder; fields may be quoted. Labels are integers in any notation (1, 01, 1.0, 1e0) or class names,
// numbered in bytewise order. Numbers among names are refused, naming the line, unless every label is in quotes:
// then all are names. Every file is opened once, with the table; a missing one is a bad record.
// SourceInfo::columns says what is left out. Fields: image (encoded), label i64, and those of `columns`.
struct CsvOptions {
  std::string path_column = "path";
  std::string label_column = "label";
  std::uint64_t label_count = 0;
  std::vector<std::string> columns = {};
  LabelType label_type = LabelType::kAuto;
  void each_field(OptionVisitor& visit) {
    visit("path_column", path_column, "The column with the paths of the images.");
    each_field_without_images(visit);
  }
  void each_field_without_images(OptionVisitor& visit) {
    visit("label_column", label_column, "The column with the labels.");
    visit("label_count", label_count, source_sentences::kLabelCount);
    visit("columns", columns, source_sentences::kColumns);
    visit("label_type", label_type, source_sentences::kLabelType);
  }
};
SourcePtr csv_manifest(const std::filesystem::path& csv, CsvOptions options = {});
// A table without images, in memory. Fields: label, if there is such a column, and those of `columns`; if none are
// named, every column of numbers. SourceInfo::columns says what is left out. `path_column` stays as it is.
SourcePtr csv_table(const std::filesystem::path& csv, CsvOptions options = {});

// TFRecord files whose records are tf.train.Examples with one encoded image and one integer label, or with kNumber
// floats. Further features have as many elements as in the first readable record. The lengths are checked when it
// is opened, each record's bytes when it is read. Plain files are read by position; those compressed with gzip,
// zlib or zstd have no positions and are unpacked into memory when opened. Unpack larger ones beforehand: they are
// then read from the disk. SourceInfo::columns says what is left out. Fields: image (encoded), label i64, and
// those of `feature_keys`.
struct TfRecordOptions {
  Split split = Split::kTrain;  // as WebDatasetOptions::split
  std::vector<std::string> image_keys = {"image/encoded", "image"};
  std::vector<std::string> label_keys = {"image/class/label", "label"};
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  std::vector<std::string> feature_keys = {};  // as ColumnOptions::columns; bytes if they are images or text
  LabelType label_type = LabelType::kAuto;     // kClass: integers
  LayoutOptions layout = {};                   // its train_folder and test_folder
  bool indexed = true;
  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    visit("image_keys", image_keys, "The image is the first of these features that an example has.");
    visit("label_keys", label_keys, "The label is the first of these features that an example has.");
    visit("classes", classes, source_sentences::kClasses);
    visit("label_count", label_count, source_sentences::kLabelCount);
    visit("memory_limit", memory_limit, source_sentences::kMemoryLimit);
    visit("feature_keys", feature_keys, source_sentences::kColumns);
    visit("label_type", label_type, source_sentences::kLabelType);
    layout.each_field(visit);
    visit("indexed", indexed, source_sentences::kIndexed);
  }
};
// Opens one file, or a folder of *.tfrecord, *.tfrecord.gz, *.tfrecord-00000-of-00004 or train-00000-of-00004.
// Throws DataError naming the missing shards of such a count.
SourcePtr tf_records(const std::filesystem::path& path, TfRecordOptions options = {});
SourcePtr tf_records(std::vector<std::filesystem::path> files, TfRecordOptions options = {});

// NumPy's arrays, one field each: a .npy file, a folder of them, or an .npz archive (stored or compressed). The
// first axis counts the records. Names tell the split (x_train, y_train, x_test, y_test as in Keras's mnist.npz;
// val stands for test if there is none; without them all are train) and the field: x, image, images and data are
// "image", y, label, labels, target and targets are "label", others keep their name. Elements are bool (u8),
// integers of 8 to 64 bits (u8, else i32 or i64, whichever holds them), float16, float32 and float64 (f32, rounded
// to nearest), in either byte order; a "label" of integers is i64, and an "image" of two axes gets a channel. C or
// Fortran order. A structured array of one axis stands for its members, each a field; texts of bytes (S5) are u8
// (5). In memory up to `memory_limit` bytes; .npy files larger than that or than 1 GiB are read by
// position, if in C order.
struct NumpyOptions {
  Split split = Split::kTrain;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  void each_field(OptionVisitor& visit) {
    visit("split", split, source_sentences::kSplit);
    visit("memory_limit", memory_limit, source_sentences::kMemoryLimit);
  }
};
SourcePtr numpy_arrays(const std::filesystem::path& path, NumpyOptions options = {});

// Records made by a function of their number, which several threads call at once, in any order. It must always
// give the same bytes for the same number; it may block. A field may be of varying first extent.
struct GeneratorOptions {
  std::string name = "generator";
  Fields fields = {};
  std::uint64_t records = 0;
  std::uint64_t fingerprint = 0;  // identity of its output: change it with the function or its data; 0: none
  bool anonymous = false;         // the fingerprint does not distinguish it from another function
  std::vector<std::string> classes = {};
  std::function<void(std::uint64_t index, RecordWriter& record)> function = {};
};
SourcePtr generator(GeneratorOptions options);

// Records that a function gives one after another until it returns false: for data without numbers or known
// length. It is called at once, to the end, by the thread that opens the source; its records are kept in memory,
// so that they are shuffled, cached and continued like all others, and identified by their bytes.
struct PullOptions {
  std::string name = "pulled";
  Fields fields = {};
  std::vector<std::string> classes = {};
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  std::function<bool(RecordWriter& record)> function = {};
};
SourcePtr pulled(PullOptions options);

// Records that a function gives one after another, perhaps without end, and that are not kept: a queue, a
// simulation, a connection. They are served in order or shuffled within windows (Dataset::shuffle_window), in one
// pass; whatever needs their numbers or count is refused. A loader's state is a position: a restored loader opens
// the stream at the first record it needs.
struct StreamOptions {
  std::string name = "stream";
  Fields fields = {};
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;  // as in SourceInfo
  std::uint64_t fingerprint = 0;  // identity of its records: change it with the function or its data
  // Returns a function that gives the records from number `first` on, one per call, until it returns false. Called
  // once by each loader, as is each of its results, by one thread of the engine, where both may block. A DataError
  // belongs to its record; any other exception ends the stream.
  std::function<std::function<bool(RecordWriter& record)>(std::uint64_t first)> open = {};
};
SourcePtr record_stream(StreamOptions options);

// A tar in WebDataset's naming that another program writes to a pipe (a named one, or "/dev/stdin"): `zstd -dc
// train.tar.zst | ...`. A stream like record_stream()'s, for one loader. The members of a sample stand side by
// side. A loader that continues from a state skips what comes before: the writer starts from the beginning.
// Fields: image (encoded), label i64.
struct WebStreamOptions {
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t max_image_bytes = std::uint64_t{1} << 30;
  void each_field(OptionVisitor& visit) {
    visit("classes", classes, source_sentences::kClasses);
    visit("label_count", label_count, source_sentences::kLabelCount);
    visit("fingerprint", fingerprint, "The identity of the data, which cannot be inspected beforehand.");
    visit("max_image_bytes", max_image_bytes, "A larger image is a bad record.");
  }
};
SourcePtr web_stream(const std::filesystem::path& pipe, WebStreamOptions options = {});

// Opens one split of a record file of convert_dataset(), or of a folder of them (pipeline/FORMAT.md): read by
// position, each record checked against its checksum at every read. Fields and classes are the origin's.
SourcePtr record_file(const std::filesystem::path& path, Split split);

// Returns one sentence with the formats that open_source() reads; errors about unrecognised data end with it.
std::string accepted_formats();
// Facts about the data that the data do not state.
struct SourceOptions {
  LayoutOptions layout = {};  // ConfigError if there are no images in folders, or shards
  std::uint64_t label_count = 0;
  ColumnOptions columns = {};  // ConfigError if there are none
  bool indexed = true;         // ConfigError if false and there are no shards
  void each_field(OptionVisitor& visit) {
    layout.each_field(visit);
    visit("label_count", label_count, source_sentences::kLabelCount);
    columns.each_field(visit);
    visit("indexed", indexed, source_sentences::kIndexed);
  }
};

// Opens the source at `path`, any of the above, recognised by content; an archive in which files beside images
// could also be WebDataset's is images in folders if `layout` says where their classes are. Throws ConfigError or
// DataError saying what was found there and what is understood. Here and above a path may be a URL:
// sources/README.md, "Remote data".
SourcePtr open_source(const std::filesystem::path& path, Split split, const SourceOptions& options = {});

struct OpenedSource {
  std::string format;  // recognised as: "images in folders", "IDX files"
  SourcePtr source;
};
// Opens a source as open_source() does and says which format it is.
OpenedSource recognise_source(const std::filesystem::path& path, Split split, const SourceOptions& options = {});

}  // namespace headrace
