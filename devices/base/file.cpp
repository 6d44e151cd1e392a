#include "headrace/devices/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "headrace/devices/base/append_file.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_faults.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/temporary_name.h"

namespace headrace {
namespace {

constexpr int kMaxLinks = 40;  // that follow each other, as in Linux

constexpr std::size_t kWriteBuffer = std::size_t{1} << 20;

// One call never asks for more: Linux itself stops a little below 2 GiB.
constexpr std::size_t kLargestCall = std::size_t{1} << 30;

std::string reason(int error) { return std::system_category().message(error); }

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what, int error,
                       std::uint64_t offset = DataLocation::kUnknown) {
  const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  std::string hint;
  if (error == EACCES || error == EPERM) hint = "check the permissions of the file and of the folders above it";
  if (error == EMFILE || error == ENFILE) hint = "raise the limit on open files (ulimit -n)";
  if (error == ENOSPC || error == EDQUOT) hint = "free some space or choose another folder";
  if (error == ENOENT && what == "cannot create")
    hint = "make the folder " + path.parent_path().string() + " first";
  if (error == EFBIG) hint = "raise the limit on the size of files (ulimit -f) or write to another file system";
  throw DataError(code, what + ": " + reason(error), {.source = path.string(), .offset = offset}, hint);
}

std::atomic<FileFaults*> injected_faults{nullptr};

// The errno that a call shall fail with, 0: none. May cut `bytes`.
int fault(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset = 0,
          std::size_t* bytes = nullptr) {
  FileFaults* faults = injected_faults.load(std::memory_order_acquire);
  if (faults == nullptr) return 0;
  std::size_t none = 0;
  return faults->before(operation, path, offset, bytes != nullptr ? *bytes : none);
}

// Owns a descriptor until it is released.
class Descriptor {
 public:
  explicit Descriptor(int value) noexcept : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const noexcept { return value_; }
  int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_;
};

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  if (const int error = fault(FileOperation::kOpen, path); error != 0) {
    errno = error;
    return -1;
  }
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

void write_all(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& path,
               std::uint64_t offset) {
  while (!bytes.empty()) {
    std::size_t wanted = std::min(bytes.size(), kLargestCall);
    if (const int error = fault(FileOperation::kWrite, path, offset, &wanted))
      fail(path, "cannot write", error, offset);
    const ssize_t count = ::write(descriptor, bytes.data(), wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot write", errno, offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void sync_file(int descriptor, const std::filesystem::path& path) {
  if (const int error = fault(FileOperation::kSync, path); error != 0) fail(path, "cannot sync", error);
  // Devices and pipes cannot be synced and say EINVAL.
  if (::fsync(descriptor) != 0 && errno != EINVAL) fail(path, "cannot sync", errno);
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  const int error = fault(FileOperation::kRename, to);
  if (error != 0 || std::rename(from.c_str(), to.c_str()) != 0)
    fail(to, "cannot replace", error != 0 ? error : errno);
}

// Creates a new file, locked: whoever sees it unlocked knows that its writer is gone. `meant` is the file that it
// will become.
int create_locked(const std::filesystem::path& path, const std::filesystem::path& meant) {
  Descriptor descriptor(open_retrying(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666));
  if (descriptor.get() < 0) fail(meant, "cannot create", errno);
  // File systems without locks say so; there a dead writer's files cannot be told from a living one's.
  if (::flock(descriptor.get(), LOCK_EX) != 0 && errno != ENOLCK && errno != EOPNOTSUPP) {
    fail(path, "cannot lock", errno);
  }
  return descriptor.release();
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(open_retrying(folder, O_RDONLY | O_DIRECTORY));
  if (descriptor.get() < 0) fail(folder, "cannot open the folder", errno);
  // Some file systems cannot sync a folder and say EINVAL; the rename is as safe there as it can be.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) fail(folder, "cannot sync the folder", errno);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// A name beside `path` that no other writer, in this process or another, uses at the same time.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<std::uint64_t> counter{0};
  std::string name = path.filename().string();
  name.append(".").append(std::to_string(::getpid()));
  name.append(".").append(std::to_string(counter.fetch_add(1))).append(".tmp");
  return folder_of(path) / name;
}

// The end of the links at `path`, where nothing needs to lie.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < kMaxLinks; ++links) {
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) return path;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) fail(path, "cannot follow the link", error.value());
    path = path.parent_path() / target;
  }
  fail(path, "cannot follow the links", ELOOP);
}

bool is_standard_stream(const struct stat& file) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status {};
    if (::fstat(stream, &status) == 0 && status.st_dev == file.st_dev && status.st_ino == file.st_ino) return true;
  }
  return false;
}

// Whether bytes go into what lies at `path`, which is never replaced. Throws for what is no place for bytes.
bool is_written_in_place(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return is_standard_stream(status);
  if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)) return true;
  throw DataError(ErrorCode::kInvalidArgument,
                  S_ISDIR(status.st_mode) ? "is a folder, not a file to write" : "is not a file to write",
                  {.source = path.string()}, "name another file");
}

std::uint64_t time_of_change(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

FileIdentity identity_of(const struct stat& status) {
  return {.device = static_cast<std::uint64_t>(status.st_dev), .inode = static_cast<std::uint64_t>(status.st_ino)};
}

// Not every file system says in the folder itself what its entries are.
bool is_link(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_LNK;
  struct stat status {};
  return ::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

DirectoryEntry describe_entry(int folder, const std::filesystem::path& path, const dirent& found) {
  const char* name = found.d_name;
  struct stat status {};
  DirectoryEntry entry{.path = path / name, .is_link = is_link(folder, found)};
  if (::fstatat(folder, name, &status, 0) == 0) {
    entry.is_directory = S_ISDIR(status.st_mode);
    entry.size = entry.is_directory ? 0 : static_cast<std::uint64_t>(status.st_size);
    entry.modified_ns = time_of_change(status);
    entry.identity = identity_of(status);
  } else if (errno != ENOENT && errno != ELOOP) {
    fail(entry.path, "cannot look at the file", errno);
  }
  return entry;
}

}  // namespace

File::File(std::filesystem::path path, int descriptor, std::uint64_t size, std::uint64_t modified_ns)
    : path_(std::move(path)), descriptor_(descriptor), size_(size), modified_ns_(modified_ns) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)),
      modified_ns_(std::exchange(other.modified_ns_, 0)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    size_ = std::exchange(other.size_, 0);
    modified_ns_ = std::exchange(other.modified_ns_, 0);
  }
  return *this;
}

File::~File() { close(); }

void File::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

File File::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer; regular files do not mind it.
  Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (descriptor.get() < 0) fail(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) fail(path, "cannot look at the file", errno);
  if (!S_ISREG(status.st_mode)) {
    throw DataError(ErrorCode::kInvalidArgument,
                    S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a regular file",
                    {.source = path.string()});
  }
  return File(path, descriptor.release(), static_cast<std::uint64_t>(status.st_size), time_of_change(status));
}

std::size_t File::read_some(std::uint64_t offset, std::span<std::byte> into) const {
  while (true) {
    std::size_t wanted = std::min(into.size(), kLargestCall);
    if (const int error = fault(FileOperation::kRead, path_, offset, &wanted))
      fail(path_, "cannot read", error, offset);
    const ssize_t count = ::pread(descriptor_, into.data(), wanted, static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) fail(path_, "cannot read", errno, offset);
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

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           Durability durability) {
  FileWriter writer(path);
  writer.append(bytes);
  writer.commit(durability);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

FileWriter::FileWriter(std::filesystem::path path, Appears appears) : path_(std::move(path)) {
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && is_written_in_place(path_, status)) {
    written_to_ = path_;
    descriptor_ = open_retrying(path_, O_WRONLY | O_APPEND | O_NOCTTY);
    if (descriptor_ < 0) fail(path_, "cannot open for writing", errno);
    return;
  }
  if (exists && ::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail(path_, "cannot replace", errno);
  path_ = follow_links(path_);
  create(appears, exists);
  // Best effort: some file systems have no permissions.
  if (exists && ::fchmod(descriptor_, status.st_mode & 0777) != 0) errno = 0;
}

void FileWriter::create(Appears appears, bool exists) {
  written_to_ = appears == Appears::kGrowing && !exists ? path_ : temporary_beside(path_);
  listed_ = TemporaryName(written_to_);
  descriptor_ = create_locked(written_to_, path_);
  unfinished_ = true;
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (unfinished_) ::unlink(written_to_.c_str());
}

void FileWriter::keep() noexcept {
  unfinished_ = false;
  listed_.release();
}

void FileWriter::write(std::span<const std::byte> bytes) {
  if (written_to_ == path_ && !bytes.empty()) keep();
  write_all(descriptor_, bytes, written_to_, written_);
  written_ += bytes.size();
}

void FileWriter::flush() {
  write(buffer_);
  buffer_.clear();
}

void FileWriter::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kWriteBuffer) flush();
  if (bytes.size() > kWriteBuffer) return write(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void FileWriter::commit(Durability durability) {
  flush();
  if (durability == Durability::kNow) sync_file(descriptor_, written_to_);
  const bool renamed = written_to_ != path_;
  if (renamed) rename_file(written_to_, path_);
  keep();
  ::close(std::exchange(descriptor_, -1));
  if (renamed && durability == Durability::kNow) sync_folder(folder_of(path_));
}

AppendFile::AppendFile(const std::filesystem::path& path, std::span<const std::byte> head) : path_(path) {
  const std::filesystem::path temporary = temporary_beside(path);
  const TemporaryName listed(temporary);
  Descriptor descriptor(create_locked(temporary, path));
  try {
    write_all(descriptor.get(), head, temporary, 0);
    rename_file(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  size_ = head.size();
  descriptor_ = descriptor.release();
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::span<const std::byte> bytes) {
  write_all(descriptor_, bytes, path_, size_);
  size_ += bytes.size();
}

void append_to_file(const std::filesystem::path& path, std::string_view text) {
  const Descriptor descriptor(open_retrying(path, O_WRONLY | O_CREAT | O_APPEND, 0666));
  if (descriptor.get() < 0) fail(path, "cannot open for appending", errno);
  write_all(descriptor.get(), std::as_bytes(std::span(text)), path, 0);
}

void make_folders(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "cannot make the folder", error.value());
}

void remove_file(const std::filesystem::path& path) {
  const int error = fault(FileOperation::kRemove, path);
  if (error == 0 && (::unlink(path.c_str()) == 0 || errno == ENOENT)) return;
  fail(path, "cannot remove", error != 0 ? error : errno);
}

bool is_being_written(const std::filesystem::path& path) {
  const Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK));
  return descriptor.get() >= 0 && ::flock(descriptor.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FileFaults* set_file_faults(FileFaults* faults) noexcept { return injected_faults.exchange(faults); }

PathKind path_kind(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return PathKind::kMissing;
  if (S_ISREG(status.st_mode)) return PathKind::kFile;
  return S_ISDIR(status.st_mode) ? PathKind::kDirectory : PathKind::kOther;
}

FileIdentity identity_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(path, "cannot look at the file", errno);
  return identity_of(status);
}

std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path) {
  struct Close {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(::opendir(path.c_str()));
  if (folder == nullptr) fail(path, "cannot open the folder", errno);
  std::vector<DirectoryEntry> entries;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(describe_entry(::dirfd(folder.get()), path, *entry));
  }
  if (errno != 0) fail(path, "cannot list the folder", errno);
  std::ranges::sort(entries, {},
                    [](const DirectoryEntry& entry) -> const std::string& { return entry.path.native(); });
  return entries;
}

}  // namespace headrace
