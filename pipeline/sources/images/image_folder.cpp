#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/pipeline/sources/images/sidecars.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/members/record_parts.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/side_by_side.h"

namespace headrace {
namespace {

struct FolderListing {
  // Relative, '/' between names. Of an empty folder its path with '/' at its end.
  NameList paths;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> modified_ns;
};

// Maximum number of folders walked. Links that do not lead in circles can still double the paths at every level.
constexpr std::uint64_t kMaxFolders = std::uint64_t{1} << 22;
// Bytes of lists that are freed before memory is returned to the system.
constexpr std::size_t kMaxDropped = std::size_t{16} << 20;

// Every reachable folder, read once however many paths lead to it.
class FolderGraph {
 public:
  explicit FolderGraph(const std::filesystem::path& root) : root_(identity_of(root)) {
    std::vector<std::pair<FileIdentity, std::filesystem::path>> level = {{root_, root}}, below;
    folders_[root_];
    for (; !level.empty(); level = std::exchange(below, {})) {
      std::vector<FolderContents> found(level.size());
      read_side_by_side(
          level.size(), /*remote=*/false, [&](std::size_t i) { found[i] = contents_of(level[i].second); },
          [&](std::size_t i) {
            const auto& [identity, path] = level[i];
            for (const FolderContents::OfFolder& folder : found[i].folders) {
              const bool is_new = folders_.try_emplace(folder.identity).second;
              if (is_new) below.emplace_back(folder.identity, path / folder.name);
              is_tree_ = is_tree_ && is_new && !folder.is_link;
            }
            files_ += found[i].files.size();
            const std::size_t prefix = path.native().size() + 1 - root.native().size();
            path_bytes_ += found[i].names.size() + prefix * found[i].files.size();
            folders_[identity] = std::move(found[i]);
          });
    }
  }

  const FileIdentity& root() const noexcept { return root_; }
  std::size_t files() const noexcept { return files_; }
  // Returns the size of their paths, if one path leads to each.
  std::size_t path_bytes() const noexcept { return path_bytes_; }
  const FolderContents& contents(const FileIdentity& folder) const { return folders_.at(folder); }
  // Frees the list of the folder's files, if no other path leads to it.
  void drop_files(const FileIdentity& folder) {
    if (!is_tree_) return;
    FolderContents& contents = folders_[folder];
    dropped_ += contents.names.capacity() + contents.files.capacity() * sizeof(FolderContents::OfFile);
    std::string().swap(contents.names);
    std::vector<FolderContents::OfFile>().swap(contents.files);
    if (dropped_ < kMaxDropped) return;
    return_freed_memory();
    dropped_ = 0;
  }

  // Returns whether `link`, in `folder`, leads to a place from which `folder` can be reached again.
  bool leads_in_a_circle(const FileIdentity& folder, const FolderContents::OfFolder& link) const {
    std::set<FileIdentity> seen;
    std::vector<FileIdentity> left = {link.identity};
    while (!left.empty()) {
      const FileIdentity at = left.back();
      left.pop_back();
      if (at == folder) return true;
      if (!seen.insert(at).second) continue;
      for (const FolderContents::OfFolder& inner : contents(at).folders) left.push_back(inner.identity);
    }
    return false;
  }

 private:
  FileIdentity root_;
  std::map<FileIdentity, FolderContents> folders_;
  std::size_t files_ = 0, path_bytes_ = 0;
  std::size_t dropped_ = 0;  // bytes of lists, since memory was returned to the system
  bool is_tree_ = true;      // one path leads to each folder
};

class Walk {
 public:
  explicit Walk(const std::filesystem::path& root) : name_(root.string()), graph_(root) {
    listing_.paths.reserve(graph_.files(), graph_.path_bytes());
    listing_.sizes.reserve(graph_.files());
    listing_.modified_ns.reserve(graph_.files());
    visit(graph_.root(), "");
  }

  FolderListing take() { return std::move(listing_); }

 private:
  void visit(const FileIdentity& at, const std::string& prefix) {
    if (++visited_ > kMaxFolders) {
      throw DataError(ErrorCode::kUnsupported,
                      "has more than " + std::to_string(kMaxFolders) + " paths to folders below it",
                      {.source = name_}, "do symbolic links lead to the same folders again and again?");
    }
    const FolderContents& contents = graph_.contents(at);
    if (contents.files.empty() && contents.folders.empty() && !prefix.empty()) add(prefix, "", 0, 0);
    for (const FolderContents::OfFile& file : contents.files)
      add(prefix, contents.name_of(file), file.size, file.modified_ns);
    graph_.drop_files(at);
    for (const FolderContents::OfFolder& folder : contents.folders) {
      if (!folder.is_link || !graph_.leads_in_a_circle(at, folder))
        visit(folder.identity, prefix + folder.name + "/");
    }
  }

  void add(std::string_view folder, std::string_view name, std::uint64_t size, std::uint64_t modified_ns) {
    listing_.paths.add(folder, name);
    listing_.sizes.push_back(size);
    listing_.modified_ns.push_back(modified_ns);
  }

  std::string name_;
  FolderGraph graph_;
  FolderListing listing_;
  std::uint64_t visited_ = 0;
};

// Lists the files. Follows symbolic links, except links to a folder above themselves: the files of such a cycle
// are listed once, at their real location. Throws DataError if a folder cannot be read, or if links multiply the
// folders beyond the limit.
FolderListing list_files_below(const std::filesystem::path& folder) {
  if (!is_url(folder)) return Walk(folder).take();
  FolderListing listing;
  const std::size_t prefix = folder.native().size() + (folder.native().ends_with('/') ? 0 : 1);
  for (const DirectoryEntry& entry : remote::list_below(folder)) {
    listing.paths.add(std::string_view(entry.path.native()).substr(prefix));
    listing.sizes.push_back(entry.size);
    listing.modified_ns.push_back(entry.modified_ns);
  }
  return listing;
}

Fingerprint revision_of(const FolderListing& listing, const ImageListing& layout, const Sidecars& sidecars) {
  Fingerprint revision("");
  for (const ImageListing::Record& record : layout.records)
    revision.add(listing.modified_ns[sidecars.listed_at(record.path)]);
  return revision;
}

// Returns the elements of the records, in their order: the list itself where that is the same.
std::vector<std::uint64_t> in_order(std::vector<std::uint64_t> listed,
                                    const std::vector<ImageListing::Record>& records) {
  bool is_same = listed.size() == records.size();
  for (std::size_t i = 0; is_same && i < records.size(); ++i) is_same = records[i].path == i;
  if (is_same) return listed;
  std::vector<std::uint64_t> ordered;
  ordered.reserve(records.size());
  for (const ImageListing::Record& record : records) ordered.push_back(listed[record.path]);
  return ordered;
}

// Images as files: listed once, opened at each read, with the files beside them that are taken along.
class ImageFolder final : public Source {
 public:
  ImageFolder(const std::filesystem::path& folder, FolderListing listing, const ImageListing& layout,
              MemberFields fields, const Sidecars& sidecars)
      : folder_(folder), fields_(std::move(fields)) {
    Fingerprint revision = revision_of(listing, layout, sidecars);
    if (fields_.empty()) {  // there may be millions: each list goes when nothing needs it any more
      std::vector<std::uint64_t>().swap(listing.modified_ns);
      sizes_ = in_order(std::move(listing.sizes), layout.records);
    } else {
      for (const ImageListing::Record& record : layout.records)
        sizes_.push_back(listing.sizes[sidecars.listed_at(record.path)]);
    }
    table_ = ImageTable(layout, std::move(listing.paths));
    Fingerprint fingerprint("image folder 1");
    table_.add_to(fingerprint);
    for (const std::uint64_t size : sizes_) fingerprint.add(size);
    info_ = table_.info(folder.string(), fingerprint);
    if (!fields_.empty()) take_along(listing, sidecars, fingerprint, revision);
    info_.revision = revision.value();
    table_.share();
    sizes_.share();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    try {
      RecordParts parts(scratch);
      read_file(path_below(folder_, table_.name(index)), table_.name(index),
                parts.room(0, static_cast<std::size_t>(sizes_[index])), index);
      parts.keep(1, table_.label(index));
      fields_.read(Beside(*this, index), 2, parts);
      return parts.view();
    } catch (const DataError& error) {
      if (error.location().record != DataLocation::kUnknown) throw;
      throw DataError(error.code(), "cannot read " + describe(index),
                      {.source = info_.name, .record = index, .offset = error.location().offset}, error.message());
    } catch (const Error& error) {
      throw DataError(error.code(), describe(index) + ": " + error.message(),
                      {.source = info_.name, .record = index}, error.hint());
    }
  }

  void will_read(std::span<const std::uint64_t> records) const override {
    if (!is_url(folder_)) return;
    if (records.empty()) remote::forget_whole();
    for (const std::uint64_t record : records) {
      remote::will_read_whole(path_below(folder_, table_.name(record)), sizes_[record]);
      announce_beside(record);
    }
  }

  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return table_.label_value(index);
  }
  std::string describe(std::uint64_t index) const override { return std::string(table_.name(index)); }

 private:
  static constexpr std::uint64_t kNoFile = ~std::uint64_t{0};

  // The files beside an image.
  class Beside final : public SampleMembers {
   public:
    Beside(const ImageFolder& images, std::uint64_t record) : images_(images), record_(record) {}

    std::optional<std::uint64_t> size(std::size_t member) const override {
      const std::uint64_t size = images_.size_beside(record_, member);
      return size == kNoFile ? std::nullopt : std::optional(size);
    }
    std::span<const std::byte> kept(std::size_t /*member*/) const override { return {}; }
    std::string path(std::size_t member) const override { return images_.path_beside(record_, member); }
    void read(std::size_t member, std::span<std::byte> into) const override {
      images_.read_file(images_.file_beside(record_, member), path(member), into, record_);
    }

   private:
    const ImageFolder& images_;
    std::uint64_t record_;
  };

  // Reads all of a file that had this many bytes when the folder was opened.
  void read_file(const std::filesystem::path& path, std::string_view name, std::span<std::byte> into,
                 std::uint64_t record) const {
    const File file = File::open(path);
    if (file.size() == into.size()) return file.read_exact(0, into);
    throw DataError(ErrorCode::kDataCorrupt,
                    std::string(name) + " has " + std::to_string(file.size()) + " bytes, and had " +
                        std::to_string(into.size()) + " when the folder was opened",
                    {.source = info_.name, .record = record}, "files must not change while they are read");
  }

  std::uint64_t size_beside(std::uint64_t record, std::size_t member) const {
    return beside_[static_cast<std::size_t>(record) * fields_.extensions().size() + member];
  }
  std::string path_beside(std::uint64_t record, std::size_t member) const {
    return Sidecars::path_beside(table_.name(record), fields_.extensions()[member]);
  }
  // A pattern may lead out of the folder, as its writer says; the image's name does not.
  std::filesystem::path file_beside(std::uint64_t record, std::size_t member) const {
    const std::string outer = outer_folder(fields_.extensions()[member]);
    return path_below(folder_ / outer, path_beside(record, member).substr(outer.size()));
  }

  void announce_beside(std::uint64_t record) const {
    for (std::size_t member = 0; member < fields_.extensions().size(); ++member) {
      const std::uint64_t size = size_beside(record, member);
      if (size != kNoFile) remote::will_read_whole(file_beside(record, member), size);
    }
  }

  void take_along(const FolderListing& listing, const Sidecars& sidecars, Fingerprint& fingerprint,
                  Fingerprint& revision) {
    const std::vector<std::string>& extensions = fields_.extensions();
    beside_.reserve(table_.size() * extensions.size());
    for (std::uint64_t record = 0; record < table_.size(); ++record) {
      for (std::size_t member = 0; member < extensions.size(); ++member) {
        const std::size_t listed = sidecars.find(path_beside(record, member));
        const bool missing = listed == Sidecars::kMissing;
        beside_.push_back(missing ? kNoFile : listing.sizes[listed]);
        fingerprint.add(beside_.back());
        revision.add(missing ? std::uint64_t{0} : listing.modified_ns[listed]);
      }
    }
    const std::uint64_t learned = fields_.samples_to_learn_from(table_.size());
    const bool remote = is_url(folder_) && !fields_.are_bytes();
    for (std::uint64_t record = 0; record < learned; ++record) {
      const std::uint64_t ahead = std::min(learned, record + kSamplesLearnedFrom);
      for (std::uint64_t next = record; remote && record % kSamplesLearnedFrom == 0 && next < ahead; ++next) {
        announce_beside(next);
      }
      fields_.learn(Beside(*this, record));
    }
    settle_sidecars(fields_, sidecars, fingerprint, info_);
  }

  std::filesystem::path folder_;
  ImageTable table_;
  MemberFields fields_;
  TableColumn<std::uint64_t> sizes_;
  std::vector<std::uint64_t> beside_;  // sizes of the files taken along, by record; kNoFile
  SourceInfo info_;
};

// Adds the files that patterns name outside of the folder.
void list_outside(const std::filesystem::path& folder, const std::vector<std::string>& patterns,
                  FolderListing& listing) {
  for (const std::string& pattern : patterns) {
    const std::string outer = outer_folder(pattern);
    if (outer.empty()) continue;
    if (is_url(folder)) {
      throw ConfigError(folder.string() + ": '" + pattern + "' leads out of it, where nothing can be listed",
                        "open the folder above, and name the files below it");
    }
    const FolderListing other = list_files_below(folder / outer);
    for (std::size_t i = 0; i < other.paths.size(); ++i) {
      const std::string path = outer + std::string(other.paths[i]);
      if (!Sidecars::is_one(path, {pattern})) continue;
      listing.paths.add(path);
      listing.sizes.push_back(other.sizes[i]);
      listing.modified_ns.push_back(other.modified_ns[i]);
    }
  }
}

}  // namespace

SourcePtr image_folder(const std::filesystem::path& folder, Split split, const LayoutOptions& layout,
                       const ColumnOptions& columns) {
  refuse_named_columns(folder, columns);
  MemberFields fields(columns.columns, folder.string());
  FolderListing listing = list_files_below(folder);
  list_outside(folder, fields.extensions(), listing);
  const Sidecars sidecars(listing.paths, fields.extensions());
  refuse_samples(listing.paths, fields.extensions(), layout, folder.string(), /*recognised=*/false);
  const ImageListing layout_found = lay_out_images(listing.paths, split, folder.string(), layout);
  return opened_by(
      ImageFolderCall{{folder, {split, layout, columns}}},
      std::make_shared<ImageFolder>(folder, std::move(listing), layout_found, std::move(fields), sidecars));
}

}  // namespace headrace
