#include "headrace/devices/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/system_file.h"

namespace headrace {
namespace {

std::uint64_t in_ns(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}
std::uint64_t time_of_change(const struct stat& status) { return in_ns(status.st_mtim); }

FileIdentity identity_of(const struct stat& status) {
  return {.device = static_cast<std::uint64_t>(status.st_dev), .inode = static_cast<std::uint64_t>(status.st_ino)};
}

// Returns whether the entry is a link; not every file system stores that in the folder itself.
bool is_link(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_LNK;
  struct stat status {};
  return ::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

void want_regular(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  throw DataError(ErrorCode::kInvalidArgument,
                  S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a regular file",
                  {.source = path.string()}, "name a file");
}

// Looks at what a name in a folder stands for, links followed; all zero for a dangling link.
struct stat look_at_entry(int folder, const std::filesystem::path& path, const char* name) {
  struct stat status {};
  if (::fstatat(folder, name, &status, 0) == 0) return status;
  if (errno != ENOENT && errno != ELOOP) os::fail(path / name, "cannot look at the file", errno);
  return {};
}

// Calls visit(descriptor of the folder, entry, status) for each name in a local folder but "." and "..".
template <typename Visit>
void visit_folder(const std::filesystem::path& path, const Visit& visit) {
  struct Close {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(os::has_nul(path) ? nullptr : ::opendir(path.c_str()));
  if (folder == nullptr) os::fail(path, "cannot open the folder", errno);
  const int descriptor = ::dirfd(folder.get());
  for (errno = 0; const dirent* entry = ::readdir(folder.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    visit(descriptor, *entry, look_at_entry(descriptor, path, entry->d_name));
  }
  if (errno != 0) os::fail(path, "cannot list the folder", errno);
}

}  // namespace

bool is_url(const std::filesystem::path& path) noexcept {
  return is_http_url(path.native()) || is_store_url(path.native());
}

FileFacts look_at_file(const std::filesystem::path& path) {
  if (is_url(path)) {
    const File file = File::open(path);
    return {.size = file.size(), .modified_ns = file.modified_ns()};
  }
  if (const int error = os::fault(FileOperation::kOpen, path); error != 0) os::fail(path, "cannot open", error);
  struct stat status {};
  if (!os::look_at(path, status) || ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0)
    os::fail(path, "cannot open", errno);
  want_regular(path, status);
  return {.size = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = in_ns(status.st_mtim),
          .changed_ns = in_ns(status.st_ctim)};
}

File::File(std::filesystem::path path, std::shared_ptr<remote::Handle> remote)
    : path_(std::move(path)), size_(remote->size()), modified_ns_(remote->version()), remote_(std::move(remote)) {}

File File::open(const std::filesystem::path& path) {
  if (is_url(path)) return File(path, remote::open(path));
  // Without O_NONBLOCK a named pipe would wait for a writer; regular files ignore it.
  Descriptor descriptor = os::open(path, O_RDONLY | O_NONBLOCK);
  if (!descriptor.is_open()) os::fail(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) os::fail(path, "cannot look at the file", errno);
  want_regular(path, status);
  return File(path, std::move(descriptor), static_cast<std::uint64_t>(status.st_size), time_of_change(status));
}

void File::will_read(std::span<const ByteExtent> extents) const {
  if (remote_ != nullptr) remote_->will_read(extents);
}

void File::will_read_from(std::uint64_t offset, std::uint64_t bytes_before) const {
  if (remote_ != nullptr) return remote_->will_read_from(offset, bytes_before);
  ::posix_fadvise(descriptor_.get(), static_cast<off_t>(offset), 0, POSIX_FADV_SEQUENTIAL);
}

std::size_t File::read_some(std::uint64_t offset, std::span<std::byte> into) const {
  if (remote_ != nullptr) return remote_->read_some(offset, into);
  while (true) {
    std::size_t wanted = std::min(into.size(), os::kMaxCall);
    if (const int error = os::fault(FileOperation::kRead, path_, offset, &wanted))
      os::fail(path_, "cannot read", error, offset);
    const ssize_t count = ::pread(descriptor_.get(), into.data(), wanted, static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) os::fail(path_, "cannot read", errno, offset);
  }
}

void File::read_exact(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t count = read_some(offset + done, into.subspan(done));
    if (count == 0) {
      throw DataError(
          ErrorCode::kDataCorrupt,
          "the file ends early: wanted " + std::to_string(into.size()) + " bytes, found " + std::to_string(done),
          {.source = path_.string(), .offset = offset + done}, "is it still being written or copied?");
    }
    done += count;
  }
}

std::vector<std::byte> read_whole_file(const std::filesystem::path& path, std::uint64_t limit) {
  const File file = File::open(path);
  if (file.size() > limit) {
    throw DataError(
        ErrorCode::kOutOfMemory,
        "has " + std::to_string(file.size()) + " bytes, more than the limit of " + std::to_string(limit),
        {.source = path.string()});
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_exact(0, bytes);
  return bytes;
}

void make_folders(const std::filesystem::path& path) {
  if (is_url(path)) return;
  std::error_code error;
  if (!os::has_nul(path)) std::filesystem::create_directories(path, error);
  if (error || os::has_nul(path)) os::fail(path, "cannot make the folder", error.value());
}

void remove_file(const std::filesystem::path& path) {
  if (is_url(path)) return remote::remove(path);
  const int error = os::has_nul(path) ? EINVAL : os::fault(FileOperation::kRemove, path);
  if (error == 0 && (::unlink(path.c_str()) == 0 || errno == ENOENT)) return;
  os::fail(path, "cannot remove", error != 0 ? error : errno);
}

PathKind path_kind(const std::filesystem::path& path) {
  if (is_url(path)) return remote::kind(path);
  struct stat status {};
  if (!os::look_at(path, status)) return PathKind::kMissing;
  if (S_ISREG(status.st_mode)) return PathKind::kFile;
  if (S_ISFIFO(status.st_mode)) return PathKind::kPipe;
  return S_ISDIR(status.st_mode) ? PathKind::kDirectory : PathKind::kOther;
}

FileIdentity identity_of(const std::filesystem::path& path) {
  if (is_url(path)) return remote::identity(path);
  struct stat status {};
  if (!os::look_at(path, status)) os::fail(path, "cannot look at the file", errno);
  return identity_of(status);
}

std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path) {
  if (is_url(path)) return remote::list(path);
  std::vector<DirectoryEntry> entries;
  visit_folder(path, [&](int folder, const dirent& found, const struct stat& status) {
    const bool is_directory = S_ISDIR(status.st_mode);
    entries.push_back({.path = path / found.d_name,
                       .is_directory = is_directory,
                       .is_link = is_link(folder, found),
                       .size = is_directory ? 0 : static_cast<std::uint64_t>(status.st_size),
                       .modified_ns = time_of_change(status),
                       .identity = identity_of(status)});
  });
  std::ranges::sort(entries, {},
                    [](const DirectoryEntry& entry) -> const std::string& { return entry.path.native(); });
  return entries;
}

FolderContents contents_of(const std::filesystem::path& path) {
  FolderContents contents;
  visit_folder(path, [&](int folder, const dirent& found, const struct stat& status) {
    if (S_ISDIR(status.st_mode)) {
      contents.folders.push_back(
          {.name = found.d_name, .identity = identity_of(status), .is_link = is_link(folder, found)});
      return;
    }
    const std::string_view name = found.d_name;
    if (contents.names.size() + name.size() > std::numeric_limits<std::uint32_t>::max())
      os::fail(path, "cannot list", EOVERFLOW);
    contents.files.push_back({.name = static_cast<std::uint32_t>(contents.names.size()),
                              .name_size = static_cast<std::uint32_t>(name.size()),
                              .size = static_cast<std::uint64_t>(status.st_size),
                              .modified_ns = time_of_change(status)});
    contents.names += name;
  });
  contents.names.shrink_to_fit();
  contents.files.shrink_to_fit();
  std::ranges::sort(contents.files, {}, [&](const auto& file) { return contents.name_of(file); });
  std::ranges::sort(contents.folders, {}, &FolderContents::OfFolder::name);
  return contents;
}

Pipe Pipe::open(const std::filesystem::path& path) {
  const BlockingCall waits;
  Descriptor descriptor = os::open(path, O_RDONLY);
  if (!descriptor.is_open()) os::fail(path, "cannot open", errno);
  return {path, std::move(descriptor)};
}

std::size_t Pipe::read_some(std::span<std::byte> into) {
  const BlockingCall waits;
  while (true) {
    std::size_t wanted = std::min(into.size(), os::kMaxCall);
    if (const int error = os::fault(FileOperation::kRead, path_, offset_, &wanted))
      os::fail(path_, "cannot read", error, offset_);
    const ssize_t count = ::read(descriptor_.get(), into.data(), wanted);
    if (count >= 0) {
      offset_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR) os::fail(path_, "cannot read", errno, offset_);
  }
}

}  // namespace headrace
