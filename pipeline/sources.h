// The sources there are. Each opens at once and fails at once, naming the path and what it expected.
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
#include "headrace/pipeline/source.h"

namespace HEADRACE_API headrace {

// Where a generator's function puts the fields of one record.
// Lives for one call of the function; every field is written once, in any order.
class RecordWriter {
 public:
  // `buffer` is reused from record to record.
  RecordWriter(const Fields& fields, std::vector<std::byte>& buffer) : fields_(&fields), buffer_(&buffer) {}

  // Room for field number `field`, to be filled before the next call of anything here; uninitialised. A field of a
  // fixed shape has exactly its elements; one of varying first extent a whole number of entries. ConfigError where
  // `bytes` is neither, or the field was written before.
  std::span<std::byte> allocate(std::size_t field, std::size_t bytes);
  void put(std::size_t field, std::span<const std::byte> bytes);
  // The elements of a field, or the one of a scalar.
  template <typename Value>
  requires std::is_arithmetic_v<Value>
  void put(std::size_t field, Value value) { put(field, std::as_bytes(std::span(&value, 1))); }

  // The fields written; ConfigError naming one that was not.
  RecordView view() const;

 private:
  struct Place {
    std::size_t offset = 0, size = 0;
    bool written = false;
  };

  const Fields* fields_;
  std::vector<std::byte>* buffer_;
  std::size_t used_ = 0;
  std::array<Place, kMaxFields> places_{};
};

// One field of an in-memory dataset: `bytes` holds `records` times field.shape elements, back to back.
struct Array {
  Field field;
  std::vector<std::byte> bytes;
};
// Arrays of equal length; ConfigError otherwise.
SourcePtr in_memory(std::string name, std::uint64_t records, std::vector<Array> arrays);

// The same of bytes that belong to somebody else, who keeps them as they are while the source lives.
struct BorrowedArray {
  Field field;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner = {};  // kept as long as the source; null: the caller sees to that
};
SourcePtr borrowed_arrays(std::string name, std::uint64_t records, std::vector<BorrowedArray> arrays,
                          std::vector<std::string> classes = {});

// "train" or "test": which half of a dataset that comes in two.
enum class Split { kTrain, kTest };
Split parse_split(const std::string& name);

// A folder with MNIST's four files (train-images-idx3-ubyte ...), plain or .gz, resident. Elements may be of any
// of IDX's types: signed bytes and shorts become i32, doubles f32 (rounded to nearest). `label_count` as in
// SourceInfo; 0: the format does not say how many classes there are. Fields: image u8 (28, 28, 1), label i64.
SourcePtr idx_folder(const std::filesystem::path& folder, Split split, std::uint64_t label_count = 0);
// One pair of IDX files: images of one to six axes, the first counting the records (a record of two has one
// channel added), and labels, integers of one axis.
SourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels,
                    std::uint64_t label_count = 0);

// A folder with CIFAR-10's data_batch_1..5.bin and test_batch.bin (or CIFAR-100's train.bin, test.bin: fine
// labels), resident. Fields: image u8 (32, 32, 3), label i64.
SourcePtr cifar_binary(const std::filesystem::path& folder, Split split);

// How to read the folders of an image collection where their names alone do not tell.
struct LayoutOptions {
  // Which folder of its path names an image's class. Empty: recognised. "2": the second from the top; "parent":
  // the one it lies in; "none": there are no classes, every label is 0. Or a pattern as "photos/*/{class}" or
  // "{class}/{split}", where * is any one folder: images below no such folder are left out.
  std::string classes_at = {};
  // The folder with the images of a split, by its name or, where several are called so, by the end of its path.
  // Empty: recognised by their names.
  std::string train_folder = {};
  std::string test_folder = {};

  bool empty() const noexcept { return classes_at.empty() && train_folder.empty() && test_folder.empty(); }
};

// Images (.jpg, .jpeg, .png) in a folder for each class, `cat/1.jpg`, below any number of folders around them, and
// perhaps with a folder for each split above the classes: train/ or training/, test/ or testing/, val/, valid/ or
// validation/. Where the images lie side by side, a prefix `<wnid>_name.JPEG` gives the class. val/ is the test
// split where there is no test/ with classes; without split folders all images are the train split. Labels are the
// classes of all splits in bytewise order; records are in bytewise order of their path. ConfigError showing the
// tree as it was found and what to say where it can be read in more than one way: images at several depths,
// classes at more than one level, one class alone. Fields: image (encoded), label i64.
SourcePtr image_folder(const std::filesystem::path& folder, Split split, const LayoutOptions& layout = {});

// The same inside a .tar, .tar.zst, .tar.gz, .tgz or .zip. A plain .tar or a .zip is indexed once and read by
// position, of a .zip with each image's CRC-32 checked; a compressed tar is unpacked into memory when opened, up
// to `memory_limit` bytes, which also bounds the window of a zstd file (beyond 128 MiB). Archives that were joined
// (cat a.tar b.tar) are read to the end of the last.
struct ArchiveOptions {
  Split split = Split::kTrain;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  LayoutOptions layout = {};
};
SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options = {});

// Archives (.tar, .tar.zst, .tar.gz, .zip) in WebDataset's naming: `key.jpg|jpeg|png` and, for its label,
// `key.cls` (a decimal number) or `key.json` (the integer "label"). Records are in the order of the archives, then
// of their members. A plain .tar or a .zip is read by position; a compressed tar is unpacked into memory when
// opened. A sample without its image or its label is a bad record. Fields: image (encoded), label i64.
struct WebDatasetOptions {
  // Of a folder: its archives train-*.tar or test-*.tar; all are train otherwise. As for TFRecords, names may
  // count the shards (train-00000-of-00004.tar), and then none may be missing.
  Split split = Split::kTrain;
  std::vector<std::string> classes = {};  // their names, which the format does not have
  std::uint64_t label_count = 0;          // as in SourceInfo
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
};
// One archive, or a folder of them.
SourcePtr web_dataset(const std::filesystem::path& path, WebDatasetOptions options = {});
SourcePtr web_dataset(std::vector<std::filesystem::path> archives, WebDatasetOptions options = {});

// What labels are. kAuto: integers, or the names of classes; numbers that are not whole are refused, as they may
// be either of the others. kClass: each value that occurs is a class, numbers in numeric order, names in bytewise
// order. kNumber: float32, to be predicted as they are: regression.
enum class LabelType { kAuto, kClass, kNumber };
LabelType parse_label_type(const std::string& name);  // "auto", "class", "number"

// A table of image files: the first line names the columns, among them path and label. Paths are relative to the
// table's folder; fields may be quoted. Labels are integers, however they are written (1, 01, 1.0, 1e0); or class
// names, numbered in bytewise order. Numbers among names are refused, naming the line, unless every label is in
// quotes: then all are names. Every file is opened once, when the table is; one that is not there is a bad record.
// SourceInfo::columns says what is left out. Fields: image (encoded), label i64, and those of `columns`.
struct CsvOptions {
  std::string path_column = "path";
  std::string label_column = "label";
  std::uint64_t label_count = 0;          // as in SourceInfo
  std::vector<std::string> columns = {};  // of numbers, fields of their own: i64 if written as integers, else f32
  LabelType label_type = LabelType::kAuto;
};
SourcePtr csv_manifest(const std::filesystem::path& csv, CsvOptions options = {});

// TFRecord files whose records are tf.train.Examples with one encoded image and one integer label, or with kNumber
// floats. Further features have as many elements as in the first record that can be read. The lengths are
// walked through and checked when it is opened, each record's bytes when it is read. Plain files are read by
// position; those compressed with gzip, zlib or zstd are unpacked into memory when opened: deflated data have no
// positions, and what does not fit is read from the disk once it is unpacked there. SourceInfo::columns says what
// is left out. Fields: image (encoded), label i64, and those of `feature_keys`.
struct TfRecordOptions {
  Split split =
      Split::kTrain;  // of a folder: its files train-*.tfrecord or test-*.tfrecord; all are train otherwise
  std::vector<std::string> image_keys = {"image/encoded", "image"};  // the first that an example has
  std::vector<std::string> label_keys = {"image/class/label", "label"};
  std::vector<std::string> classes = {};                // their names, which the format does not have
  std::uint64_t label_count = 0;                        // as in SourceInfo
  std::uint64_t memory_limit = std::uint64_t{4} << 30;  // of what compressed files unpack to
  std::vector<std::string> feature_keys = {};           // integers as i64, floats as f32, bytes if they are images
  LabelType label_type = LabelType::kAuto;              // kClass: integers
};
// One file, or a folder of *.tfrecord, *.tfrecord.gz, *.tfrecord-00000-of-00004 or train-00000-of-00004. DataError
// naming the shards of such a count that are missing.
SourcePtr tf_records(const std::filesystem::path& path, TfRecordOptions options = {});
SourcePtr tf_records(std::vector<std::filesystem::path> files, TfRecordOptions options = {});

// NumPy's arrays, one field each: a .npy file, a folder of them, or an .npz archive (stored or compressed). The
// first axis counts the records. Names tell the split (x_train, y_train, x_test, y_test as in Keras's mnist.npz;
// val stands for test where there is none; without them all are train) and the field: x, image, images and data
// are "image", y, label, labels, target and targets are "label", others keep their name. Elements are bool (u8),
// integers of 8 to 64 bits (u8, else i32 or i64, whichever holds them), float16, float32 and float64 (f32, rounded
// to nearest), in either byte order; a "label" of integers is i64, and an "image" of two axes gets a channel. In C
// order or Fortran's. In memory up to `memory_limit` bytes; .npy files of more than 1 GiB or that are read by
// position, if in C order.
struct NumpyOptions {
  Split split = Split::kTrain;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
};
SourcePtr numpy_arrays(const std::filesystem::path& path, NumpyOptions options = {});

// Records made by a function of their number, which several threads call at once, in any order. It must give the
// same bytes for the same number whenever it is called; it may block. A field may be of varying first extent.
struct GeneratorOptions {
  std::string name = "generator";
  Fields fields = {};
  std::uint64_t records = 0;
  std::uint64_t fingerprint = 0;  // identity of what it makes: change it with the function or its data; 0: none
  bool anonymous = false;         // the fingerprint does not tell it from another function
  std::vector<std::string> classes = {};
  std::function<void(std::uint64_t index, RecordWriter& record)> function = {};
};
SourcePtr generator(GeneratorOptions options);

// Records that a function gives one after another until it returns false: for what has no numbers and no known
// length. It is called by the thread that opens the source, to the end at once; what it gave is kept in memory, so
// that it is shuffled, cached and continued like everything else, and is identified by its bytes.
struct PullOptions {
  std::string name = "pulled";
  Fields fields = {};
  std::vector<std::string> classes = {};
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
  std::function<bool(RecordWriter& record)> function = {};
};
SourcePtr pulled(PullOptions options);

// Records that a function gives one after another, perhaps without end, and that are not kept: a queue, a
// simulation, a connection. They are served in their order or shuffled within windows (Dataset::shuffle_window),
// in one pass; what needs their numbers or their count is refused. A loader's state is a position: a restored
// loader opens the stream at the first record it needs.
struct StreamOptions {
  std::string name = "stream";
  Fields fields = {};
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;  // as in SourceInfo
  std::uint64_t fingerprint = 0;  // identity of what it gives: change it with the function or its data
  // Gives what gives the records from number `first` on, one a call, until it returns false. Called once by each
  // loader, as is each of its results, by one thread of the engine, where both may block. Of exceptions, a
  // DataError is its record's; another one ends the stream.
  std::function<std::function<bool(RecordWriter& record)>(std::uint64_t first)> open = {};
};
SourcePtr record_stream(StreamOptions options);

// A tar in WebDataset's naming that comes through a pipe (a named one, or "/dev/stdin"), as another program writes
// it: `zstd -dc train.tar.zst | ...`. A stream as record_stream() makes them, for one loader. The members of a
// sample stand side by side. A loader that goes on from a state passes over what comes before: the writer begins
// again at the beginning. Fields: image (encoded), label i64.
struct WebStreamOptions {
  std::vector<std::string> classes = {};  // their names, which the format does not have
  std::uint64_t label_count = 0;          // as in SourceInfo
  std::uint64_t fingerprint = 0;          // identity of the data, which cannot be looked at beforehand
  std::uint64_t max_image_bytes = std::uint64_t{1} << 30;  // a larger image is a bad record
};
SourcePtr web_stream(const std::filesystem::path& pipe, WebStreamOptions options = {});

// One split of a record file, as convert_dataset() writes it (pipeline/FORMAT.md): read by position, each record
// checked against its checksum at every read. Fields and classes are the origin's.
SourcePtr record_file(const std::filesystem::path& path, Split split);

// The formats that open_source() reads, as one sentence: errors about what is not recognised end with it.
std::string accepted_formats();
// Which columns of a table, or features of TFRecords, to take.
struct ColumnOptions {
  std::string image = {};              // empty: path of a table, image/encoded or image of TFRecords
  std::string label = {};              // empty: label; of TFRecords image/class/label or label
  std::vector<std::string> more = {};  // fields of their own
  LabelType label_type = LabelType::kAuto;

  bool empty() const noexcept {
    return image.empty() && label.empty() && more.empty() && label_type == LabelType::kAuto;
  }
};
// What the user knows of the data and the data does not say.
struct SourceOptions {
  LayoutOptions layout = {};      // ConfigError where there are no images in folders
  std::uint64_t label_count = 0;  // of formats that do not say how many classes there are; as in SourceInfo
  ColumnOptions columns = {};     // ConfigError where there are none
};

// Opens whatever lies at `path`, recognised by content: any of the above. ConfigError or DataError saying what
// was found there and what is understood.
SourcePtr open_source(const std::filesystem::path& path, Split split, const SourceOptions& options = {});

struct OpenedSource {
  std::string format;  // what it was recognised as: "images in folders", "IDX files"
  SourcePtr source;
};
// The same, saying what it is.
OpenedSource recognise_source(const std::filesystem::path& path, Split split, const SourceOptions& options = {});

}  // namespace headrace
