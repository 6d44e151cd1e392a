// The sources there are. Each opens at once and fails at once, naming the path and what it expected.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"

namespace headrace {

// One field of an in-memory dataset: `bytes` holds `records` times field.shape elements, back to back.
struct Array {
  Field field;
  std::vector<std::byte> bytes;
};
// Arrays of equal length; ConfigError otherwise.
SourcePtr in_memory(std::string name, std::uint64_t records, std::vector<Array> arrays);

// "train" or "test": which half of a dataset that comes in two.
enum class Split { kTrain, kTest };
Split parse_split(const std::string& name);

// A folder with MNIST's four files (train-images-idx3-ubyte ...), plain or .gz, resident.
// Fields: image u8 (28, 28, 1), label i64.
SourcePtr idx_folder(const std::filesystem::path& folder, Split split);
// One pair of IDX files.
SourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels);

// A folder with CIFAR-10's data_batch_1..5.bin and test_batch.bin (or CIFAR-100's train.bin, test.bin: fine
// labels), resident. Fields: image u8 (32, 32, 3), label i64.
SourcePtr cifar_binary(const std::filesystem::path& folder, Split split);

// A folder `class/name.jpg|.jpeg|.png`, or `train/class/...` and `test/class/...` beside each other.
// A val/ stands for test/ where there is none. Labels are the class folders of both splits in bytewise order;
// records are in bytewise order of their path.
// Fields: image (encoded), label i64.
SourcePtr image_folder(const std::filesystem::path& folder, Split split);

// The same layout inside a .tar, .tar.zst, .tar.gz or .tgz. A plain .tar is indexed once and read by position;
// a compressed one is unpacked into memory when opened, up to `memory_limit` bytes. Where the archive has no
// class folders, a prefix `<wnid>_name.JPEG` gives the class. Where it has no train/ and test/, it is all
// train.
struct ArchiveOptions {
  Split split = Split::kTrain;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;
};
SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options = {});

// One split of a record file, as convert_dataset() writes it (pipeline/FORMAT.md): read by position, each record
// checked against its checksum at every read. Fields and classes are the origin's.
SourcePtr record_file(const std::filesystem::path& path, Split split);

// Opens whatever lies at `path`, recognised by content: any of the above. ConfigError or DataError saying what
// was found there and what is understood.
SourcePtr open_source(const std::filesystem::path& path, Split split);

}  // namespace headrace
