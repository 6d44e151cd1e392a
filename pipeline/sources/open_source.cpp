#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/cifar_binary.h"
#include "headrace/pipeline/sources/idx.h"
#include "headrace/pipeline/sources/record_file.h"

namespace headrace {
namespace {

constexpr const char* kUnderstood =
    "understood are folders of MNIST's idx files, of CIFAR's .bin files or of images by class, such images in a "
    ".tar, .tar.gz or .tar.zst, and record files of headrace convert";

bool has_idx(const std::filesystem::path& folder) {
  for (const char* stem : {"train-images", "t10k-images"}) {
    if (!find_idx(folder, stem, 3).empty()) return true;
  }
  return false;
}

SourcePtr open_folder(const std::filesystem::path& folder, Split split) {
  if (has_idx(folder)) return idx_folder(folder, split);
  if (find_cifar(folder) != CifarFormat::kNone) return cifar_binary(folder, split);
  return image_folder(folder, split);
}

}  // namespace

Split parse_split(const std::string& name) {
  if (name == "train") return Split::kTrain;
  if (name == "test") return Split::kTest;
  throw ConfigError("there is no split '" + name + "'", "use train or test");
}

SourcePtr open_source(const std::filesystem::path& path, Split split) {
  switch (path_kind(path)) {
    case PathKind::kDirectory: return open_folder(path, split);
    case PathKind::kFile:
      return is_record_file(path) ? record_file(path, split) : image_archive(path, {.split = split});
    case PathKind::kMissing:
      throw DataError(ErrorCode::kNotFound, "there is no such file or folder", {.source = path.string()},
                      kUnderstood);
    case PathKind::kOther: break;
  }
  throw DataError(ErrorCode::kUnsupported, "is neither a file nor a folder", {.source = path.string()},
                  kUnderstood);
}

}  // namespace headrace
