#include "headrace/pipeline/sources/archives/archive_files.h"

#include <algorithm>
#include <unordered_map>
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

constexpr std::size_t kTarEnd = 1024;  // zeros that end a tar
constexpr const char* kLeadsOut = "leads out of the archive by its name";
constexpr const char* kRename = "rename it within the archive: a name there stays below its folder";

// Returns the path within the archive that a symbolic link leads to; kOutside if it leads out.
constexpr std::string_view kOutside = "..";
std::string path_of_link(const TarMember& link) {
  if (link.target.starts_with('/')) return std::string(kOutside);
  const std::filesystem::path folder = std::filesystem::path(link.path).parent_path();
  const std::string path = (folder / link.target).lexically_normal().generic_string();
  return path.starts_with("../") ? std::string(kOutside) : path;
}

class TarFiles final : public ArchiveFiles {
 public:
  // `path`: of the archive, which is read once more where it holds links; empty: its bytes come once.
  TarFiles(std::unique_ptr<ByteInput> input, std::filesystem::path path, bool has_positions)
      : has_positions_(has_positions), path_(std::move(path)), input_(std::move(input)), reader_(*input_) {}

  std::optional<ArchiveFile> next() override {
    linked_ = nullptr;
    kept_.clear();
    while (std::optional<TarMember> member = reader_.next()) {
      if (leads_out(member->path) != nullptr) {
        if (is_image_path(member->path))
          refuse_member(input_->name(), member->path, kLeadsOut, member->offset, kRename);
        continue;
      }
      switch (member->kind) {
        case TarMember::Kind::kFile:
          if (targets_) {
            remember(*member, reader_, *targets_);
            if (!has_positions_ && member->size <= kSmall) kept_ = targets_->at(member->path).bytes;  // read once
          }
          return ArchiveFile{.path = std::move(member->path),
                             .place = {.offset = member->offset, .size = member->size},
                             .header = member->header};
        case TarMember::Kind::kFolder: folders_.push_back(std::move(member->path)); break;
        case TarMember::Kind::kHardLink:
        case TarMember::Kind::kSymbolicLink:
          linked_ = member->kind == TarMember::Kind::kHardLink ? find_target(*member) : follow(*member);
          if (linked_ == &outside_) {
            ++links_out_;
            linked_ = nullptr;
          } else if (linked_ != nullptr) {
            return ArchiveFile{.path = std::move(member->path), .place = linked_->place, .header = member->header};
          } else {
            refuse_image(*member);
          }
          break;
        case TarMember::Kind::kOther: break;
      }
    }
    return std::nullopt;
  }
  void read(std::span<std::byte> into) override {
    if (linked_ == nullptr) {
      if (kept_.empty()) return reader_.read(into);
      std::ranges::copy(std::exchange(kept_, {}), into.begin());
    } else if (has_positions_) {
      File::open(path_).read_exact(linked_->place.offset, into);
    } else {
      std::ranges::copy(linked_->bytes, into.begin());
    }
  }
  void read_ahead(std::uint64_t bytes_before) override { input_->read_ahead(bytes_before); }
  bool has_positions() const noexcept override { return has_positions_; }

 private:
  static constexpr std::uint64_t kSmall = 4096;  // bytes: of a label
  static constexpr int kMaxLinks = 8;            // from one to the next

  // What links may stand for.
  struct Target {
    StoredFile place;
    std::vector<std::byte> bytes = {};  // of a small file, if it has no position
    std::string link = {};              // of another link: where that leads to
  };
  using Targets = std::unordered_map<std::string, Target>;

  void refuse_image(const TarMember& member) const {
    if (!is_image_path(member.path)) return;
    refuse_member(input_->name(), member.path, "is a link to another file", member.offset,
                  "pack the files themselves: tar --dereference --hard-dereference");
  }

  // Keeps the bytes of a small file without a position.
  void remember(const TarMember& member, TarReader& reader, Targets& targets) const {
    Target target{.place = {.offset = member.offset, .size = member.size}};
    if (!has_positions_) {
      if (member.size > kSmall) return;
      target.bytes.resize(static_cast<std::size_t>(member.size));
      reader.read(target.bytes);
    }
    targets.insert_or_assign(member.path, std::move(target));
  }

  // Reads the archive once more, up to the first link, or to its end for symbolic links, which may come first.
  Targets read_targets(const TarMember* until) const {
    Targets targets;
    const std::unique_ptr<ByteInput> input = open_input(path_);
    TarReader again(*input);
    while (const std::optional<TarMember> member = again.next()) {
      if (until != nullptr && member->offset >= until->offset) break;
      if (member->kind == TarMember::Kind::kFile) {
        remember(*member, again, targets);
      } else if (until == nullptr && !member->target.empty()) {
        const bool hard = member->kind == TarMember::Kind::kHardLink;
        targets.insert_or_assign(member->path,
                                 Target{.place = {}, .link = hard ? member->target : path_of_link(*member)});
      }
    }
    return targets;
  }

  const Target* find_target(const TarMember& link) {
    if (!targets_ && !path_.empty()) targets_ = read_targets(&link);
    if (!targets_) return nullptr;
    const auto found = targets_->find(link.target);
    return found == targets_->end() ? nullptr : &found->second;
  }

  // Returns the file that the symbolic link leads to, over other links too; null if there is none to read.
  const Target* follow(const TarMember& link) {
    if (!linkable_ && !path_.empty()) linkable_ = read_targets(nullptr);
    std::string path = path_of_link(link);
    for (int links = 0; links < kMaxLinks; ++links) {
      if (path == kOutside) return &outside_;
      if (!linkable_) return nullptr;
      const auto found = linkable_->find(path);
      if (found == linkable_->end()) return nullptr;
      if (found->second.link.empty()) return &found->second;
      path = found->second.link;
    }
    refuse_member(input_->name(), link.path, "is a link that leads in a circle, or over too many others",
                  link.offset, "pack the files themselves: tar --dereference --hard-dereference");
  }

  bool has_positions_;
  std::filesystem::path path_;
  std::unique_ptr<ByteInput> input_;
  TarReader reader_;
  std::optional<Targets> targets_;   // by path, once there is a hard link: the files before
  std::optional<Targets> linkable_;  // by path, once there is a symbolic link: all files and links
  const Target outside_ = {};
  const Target* linked_ = nullptr;  // what the last file is a link to
  std::vector<std::byte> kept_;     // the last file's bytes, if they were read to be remembered
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
      const bool out = leads_out(file.path) != nullptr;
      if (file.unreadable == nullptr && !out)
        return ArchiveFile{.path = std::move(file.path), .place = file.place};
      if (is_image_path(file.path)) {
        refuse_member(archive_, file.path, out ? kLeadsOut : file.unreadable, file.place.offset,
                      out ? kRename : "unpack it into a folder (7z x ARCHIVE.zip), and name that");
      }
      if (!out && file.path.ends_with('/')) folders_.push_back(std::move(file.path));
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

void add_links_out(std::uint64_t links, std::vector<LeftOut>& to) {
  constexpr const char* kWhat = "symbolic links out of the archive";
  if (links == 0) return;
  if (to.empty() || to.back().what != kWhat) to.push_back({.what = kWhat});
  to.back().files += links;
}

bool is_archive(const std::filesystem::path& path) {
  if (starts_like_zip(first_bytes(path))) return true;
  std::vector<std::byte> start(kFirstBytes);
  start.resize(open_input(path)->read(start));
  return starts_like_tar(start);
}

std::unique_ptr<ArchiveFiles> list_archive(const std::filesystem::path& path, std::uint64_t window_limit) {
  if (starts_like_zip(first_bytes(path))) return std::make_unique<ZipFiles>(path);
  return std::make_unique<TarFiles>(open_input(path, window_limit), path, packing_of(path) == Packing::kPlain);
}

std::unique_ptr<ArchiveFiles> list_tar_from(const std::filesystem::path& path, std::uint64_t header) {
  return std::make_unique<TarFiles>(std::make_unique<FileInput>(path, header), path, /*has_positions=*/true);
}

std::unique_ptr<ArchiveFiles> list_tar_part(const std::filesystem::path& path, std::uint64_t header,
                                            std::vector<std::byte> bytes) {
  bytes.resize(bytes.size() + kTarEnd);
  return std::make_unique<TarFiles>(std::make_unique<BytesInput>(path.string(), header, std::move(bytes)), path,
                                    /*has_positions=*/true);
}

std::unique_ptr<ArchiveFiles> open_tar(std::unique_ptr<ByteInput> input) {
  return std::make_unique<TarFiles>(std::move(input), std::filesystem::path(), false);
}

}  // namespace headrace
