#include "headrace/pipeline/sources/archives/open_archive.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources/archives/zip_directory.h"
#include "headrace/pipeline/sources/kept_index.h"

namespace headrace {
namespace {

constexpr std::string_view kReader = "tar 1";
constexpr std::uint64_t kMaxKept = std::uint64_t{64} << 10;  // bytes of a file that was read

// The kinds of entries in an index: FORMAT.md.
enum class Entry : std::uint8_t { kFile, kFileWithBytes, kFolder, kEnd };

class KeptListing final : public ArchiveFiles {
 public:
  KeptListing(std::filesystem::path archive, std::vector<std::byte> index)
      : archive_(std::move(archive)), index_(std::move(index)), reader_(index_, archive_.string(), 0) {}

  std::optional<ArchiveFile> next() override {
    bytes_ = {};
    while (!ended_) {
      switch (static_cast<Entry>(reader_.u8())) {
        case Entry::kFile: return file(/*with_bytes=*/false);
        case Entry::kFileWithBytes: return file(/*with_bytes=*/true);
        case Entry::kFolder: folders_.push_back(reader_.text()); break;
        case Entry::kEnd:
          links_out_ = reader_.u64();
          ended_ = true;
          std::vector<std::byte>().swap(index_);  // there may be much of it
          break;
        default: reader_.fail("is no entry of an index");
      }
    }
    return std::nullopt;
  }
  void read(std::span<std::byte> into) override {
    if (bytes_.size() == into.size()) {
      std::ranges::copy(bytes_, into.begin());
      return;
    }
    if (!file_) file_ = File::open(archive_);
    file_->read_exact(place_.offset, into);
  }
  bool has_positions() const noexcept override { return true; }

 private:
  ArchiveFile file(bool with_bytes) {
    std::string path = reader_.text();
    place_ = {.offset = reader_.u64(), .size = reader_.u64()};
    if (with_bytes) bytes_ = reader_.raw(place_.size);
    return {.path = std::move(path), .place = place_};
  }

  std::filesystem::path archive_;
  std::vector<std::byte> index_;
  ByteReader reader_;
  bool ended_ = false;
  StoredFile place_;                  // of the latest file
  std::span<const std::byte> bytes_;  // of it; empty: not kept
  std::optional<File> file_;          // of the archive, once it is read
};

class KeptWhenListed final : public ArchiveFiles {
 public:
  KeptWhenListed(std::unique_ptr<ArchiveFiles> files, KeptIndex kept)
      : files_(std::move(files)), kept_(std::move(kept)) {}

  std::optional<ArchiveFile> next() override {
    write_latest();
    latest_ = files_->next();
    for (std::size_t i = folders_.size(); i < files_->folders().size(); ++i) {
      folders_.push_back(files_->folders()[i]);
      index_.u8(static_cast<std::uint8_t>(Entry::kFolder)).text(folders_.back());
    }
    links_out_ = files_->links_out();
    if (!latest_ && !ended_) {
      index_.u8(static_cast<std::uint8_t>(Entry::kEnd)).u64(links_out_);
      kept_.keep(index_.bytes());
      ended_ = true;
    }
    return latest_;
  }
  void read(std::span<std::byte> into) override {
    files_->read(into);
    if (into.size() <= kMaxKept) bytes_.emplace(into.begin(), into.end());
  }
  bool has_positions() const noexcept override { return true; }

 private:
  // The latest file, and its bytes if they were read.
  void write_latest() {
    if (!latest_) return;
    const Entry entry = bytes_ ? Entry::kFileWithBytes : Entry::kFile;
    index_.u8(static_cast<std::uint8_t>(entry)).text(latest_->path);
    index_.u64(latest_->place.offset).u64(latest_->place.size);
    if (bytes_) index_.raw(*bytes_);
    latest_.reset();
    bytes_.reset();
  }

  std::unique_ptr<ArchiveFiles> files_;
  KeptIndex kept_;
  ByteWriter index_;
  std::optional<ArchiveFile> latest_;
  std::optional<std::vector<std::byte>> bytes_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ArchiveFiles> files_of_index(const std::filesystem::path& archive, std::vector<std::byte> index) {
  return std::make_unique<KeptListing>(archive, std::move(index));
}

std::unique_ptr<ArchiveFiles> open_archive(const std::filesystem::path& path, std::uint64_t window_limit) {
  KeptIndex kept(path, kReader);
  if (std::optional<std::vector<std::byte>> index = kept.find()) return files_of_index(path, *std::move(index));
  std::unique_ptr<ArchiveFiles> files = list_archive(path, window_limit);
  const bool is_plain_tar = kept.is_kept() && files->has_positions() && !starts_like_zip(first_bytes(path));
  if (!is_plain_tar) return files;
  return std::make_unique<KeptWhenListed>(std::move(files), std::move(kept));
}

}  // namespace headrace
