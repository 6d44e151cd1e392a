#include "headrace/pipeline/sources/archives/archive_files.h"

#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources/archives/tar_reader.h"
#include "headrace/pipeline/sources/archives/zip_directory.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

[[noreturn]] void refuse_member(const std::string& archive, const std::string& path, const char* why,
                                std::uint64_t offset, const char* hint) {
  throw DataError(ErrorCode::kUnsupported, "'" + path + "' " + why, {.source = archive, .offset = offset}, hint);
}

class TarFiles final : public ArchiveFiles {
 public:
  TarFiles(std::unique_ptr<ByteInput> input, bool has_positions)
      : has_positions_(has_positions), input_(std::move(input)), reader_(*input_) {}

  std::optional<ArchiveFile> next() override {
    while (std::optional<TarMember> member = reader_.next()) {
      if (member->kind == TarMember::Kind::kFile) {
        return ArchiveFile{.path = std::move(member->path),
                           .place = {.offset = member->offset, .size = member->size}};
      }
      if (member->kind == TarMember::Kind::kLink && is_image_path(member->path)) {
        refuse_member(input_->name(), member->path, "is a link to another file", member->offset,
                      "pack the files themselves: tar --dereference --hard-dereference");
      }
    }
    return std::nullopt;
  }
  void read(std::span<std::byte> into) override { reader_.read(into); }
  bool has_positions() const noexcept override { return has_positions_; }

 private:
  bool has_positions_;
  std::unique_ptr<ByteInput> input_;
  TarReader reader_;
};

class ZipFiles final : public ArchiveFiles {
 public:
  explicit ZipFiles(const std::filesystem::path& path)
      : file_(File::open(path)),
        archive_(path.string()),
        read_at_([this](std::uint64_t offset, std::span<std::byte> into) { file_.read_exact(offset, into); }),
        files_(list_zip(archive_, file_.size(), read_at_)) {}

  std::optional<ArchiveFile> next() override {
    while (next_ < files_.size()) {
      ZipFile& file = files_[next_++];
      if (file.unreadable == nullptr) return ArchiveFile{.path = std::move(file.path), .place = file.place};
      if (is_image_path(file.path)) {
        refuse_member(archive_, file.path, file.unreadable, file.place.offset,
                      "unpack it into a folder (7z x ARCHIVE.zip), and name that");
      }
    }
    return std::nullopt;
  }
  void read(std::span<std::byte> into) override { read_stored(files_[next_ - 1].place, archive_, read_at_, into); }
  bool has_positions() const noexcept override { return true; }

 private:
  File file_;
  std::string archive_;
  ReadAt read_at_;
  std::vector<ZipFile> files_;
  std::size_t next_ = 0;
};

}  // namespace

bool is_archive(const std::filesystem::path& path) {
  if (starts_like_zip(first_bytes(path))) return true;
  std::vector<std::byte> start(kFirstBytes);
  start.resize(open_input(path)->read(start));
  return starts_like_tar(start);
}

std::unique_ptr<ArchiveFiles> open_archive(const std::filesystem::path& path, std::uint64_t window_limit) {
  if (starts_like_zip(first_bytes(path))) return std::make_unique<ZipFiles>(path);
  return std::make_unique<TarFiles>(open_input(path, window_limit), packing_of(path) == Packing::kPlain);
}

std::unique_ptr<ArchiveFiles> open_tar(std::unique_ptr<ByteInput> input) {
  return std::make_unique<TarFiles>(std::move(input), false);
}

}  // namespace headrace
