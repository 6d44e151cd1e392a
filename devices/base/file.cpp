#include "headrace/devices/base/file.h"

#include <dirent.h>
#include <fcntl.h>
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

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_writer.h"

namespace headrace {
namespace {

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
  throw DataError(code, what + ": " + reason(error), {.source = path.string(), .offset = offset}, hint);
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

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) noexcept {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

void write_all(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& path,
               std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), std::min(bytes.size(), kLargestCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot write", errno, offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
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

DirectoryEntry describe_entry(int folder, const std::filesystem::path& path, const char* name) {
  struct stat status {};
  DirectoryEntry entry{.path = path / name};
  if (::fstatat(folder, name, &status, 0) == 0) {
    entry.is_directory = S_ISDIR(status.st_mode);
    entry.size = entry.is_directory ? 0 : static_cast<std::uint64_t>(status.st_size);
  } else if (errno != ENOENT && errno != ELOOP) {
    fail(entry.path, "cannot look at the file", errno);
  }
  return entry;
}

}  // namespace

File::File(std::filesystem::path path, int descriptor, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    size_ = std::exchange(other.size_, 0);
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
  return File(path, descriptor.release(), static_cast<std::uint64_t>(status.st_size));
}

std::size_t File::read_some(std::uint64_t offset, std::span<std::byte> into) const {
  while (true) {
    const ssize_t count =
        ::pread(descriptor_, into.data(), std::min(into.size(), kLargestCall), static_cast<off_t>(offset));
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

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  FileWriter writer(path);
  writer.append(bytes);
  writer.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)), temporary_(temporary_beside(path_)) {
  descriptor_ = open_retrying(temporary_, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (descriptor_ < 0) fail(temporary_, "cannot create", errno);
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void FileWriter::write(std::span<const std::byte> bytes) {
  write_all(descriptor_, bytes, temporary_, written_);
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

void FileWriter::commit() {
  flush();
  if (::fsync(descriptor_) != 0) fail(temporary_, "cannot sync", errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "cannot replace", errno);
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

PathKind path_kind(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return PathKind::kMissing;
  if (S_ISREG(status.st_mode)) return PathKind::kFile;
  return S_ISDIR(status.st_mode) ? PathKind::kDirectory : PathKind::kOther;
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
    if (name != "." && name != "..") entries.push_back(describe_entry(::dirfd(folder.get()), path, entry->d_name));
  }
  if (errno != 0) fail(path, "cannot list the folder", errno);
  std::ranges::sort(entries, {},
                    [](const DirectoryEntry& entry) -> const std::string& { return entry.path.native(); });
  return entries;
}

}  // namespace headrace
