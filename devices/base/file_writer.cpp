#include "headrace/devices/base/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/system_file.h"

namespace headrace {
namespace {

constexpr int kMaxLinks = 40;  // in a chain, as in Linux
constexpr std::size_t kWriteBuffer = std::size_t{1} << 20;

// Returns the end of the links at `path`, which need not exist.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < kMaxLinks; ++links) {
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) return path;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) os::fail(path, "cannot follow the link", error.value());
    path = path.parent_path() / target;
  }
  os::fail(path, "cannot follow the links", ELOOP);
}

bool is_standard_stream(const struct stat& file) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status {};
    if (::fstat(stream, &status) == 0 && status.st_dev == file.st_dev && status.st_ino == file.st_ino) return true;
  }
  return false;
}

// Returns whether bytes go into the existing file at `path`, which is then never replaced. Throws if it cannot
// take bytes.
bool is_written_in_place(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return is_standard_stream(status);
  if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)) return true;
  throw DataError(ErrorCode::kInvalidArgument,
                  S_ISDIR(status.st_mode) ? "is a folder, not a file to write" : "is not a file to write",
                  {.source = path.string()}, "name another file");
}

}  // namespace

FileWriter::FileWriter(std::filesystem::path path, Appears appears, Links links) : path_(std::move(path)) {
  if (is_url(path_)) {
    upload_ = remote::create(path_);
    return;
  }
  struct stat status {};
  const bool follows = links == Links::kFollowed;
  bool exists = follows ? os::look_at(path_, status) : os::look_at_link(path_, status);
  if (!follows && exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    exists = false;
    appears = Appears::kWhole;  // the name is taken until it is replaced
  }
  if (exists && is_written_in_place(path_, status)) {
    open_in_place();
    return;
  }
  if (exists && ::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0)
    os::fail(path_, "cannot replace", errno);
  if (follows) path_ = follow_links(path_);
  create(appears, exists);
  // Best effort: some file systems have no permissions.
  if (exists && ::fchmod(descriptor_.get(), status.st_mode & 0777) != 0) errno = 0;
}

void FileWriter::open_in_place() {
  written_to_ = path_;
  const BlockingCall waits;
  descriptor_ = os::open(path_, O_WRONLY | O_APPEND | O_NOCTTY);
  if (!descriptor_.is_open()) os::fail(path_, "cannot open for writing", errno);
  in_place_ = true;
}

void FileWriter::create(Appears appears, bool exists) {
  if (appears == Appears::kGrowing && !exists) {
    written_to_ = path_;
    listed_ = TemporaryName(written_to_);
    descriptor_ = os::create_locked(written_to_);
  } else {
    os::TemporaryFile file = os::create_temporary(path_);
    written_to_ = std::move(file.path);
    listed_ = std::move(file.listed);
    descriptor_ = std::move(file.descriptor);
  }
  unfinished_ = true;
}

FileWriter::~FileWriter() {
  descriptor_.close();
  if (unfinished_) ::unlink(written_to_.c_str());
}

void FileWriter::keep() noexcept {
  unfinished_ = false;
  listed_.release();
}

void FileWriter::write(std::span<const std::byte> bytes) {
  if (written_to_ == path_ && !bytes.empty()) keep();
  std::optional<BlockingCall> waits;
  if (in_place_) waits.emplace();
  os::write_all(descriptor_, bytes, written_to_, written_);
  written_ += bytes.size();
}

void FileWriter::flush() {
  if (upload_ != nullptr) return;
  write(buffer_);
  buffer_.clear();
}

void FileWriter::append(std::span<const std::byte> bytes) {
  if (upload_ != nullptr) return upload_->append(bytes);
  if (buffer_.size() + bytes.size() > kWriteBuffer) flush();
  if (bytes.size() > kWriteBuffer) return write(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void FileWriter::commit(Durability durability) {
  if (upload_ != nullptr) return upload_->commit();
  flush();
  if (durability == Durability::kNow) os::sync_file(descriptor_, written_to_);
  const bool renamed = written_to_ != path_;
  if (renamed) os::rename_file(written_to_, path_);
  keep();
  descriptor_.close();
  if (renamed && durability == Durability::kNow) os::sync_folder(os::folder_of(path_));
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

AppendFile::AppendFile(const std::filesystem::path& path, std::span<const std::byte> head) : path_(path) {
  os::TemporaryFile file = os::create_temporary(path);
  try {
    os::write_all(file.descriptor, head, file.path, 0);
    os::rename_file(file.path, path);
  } catch (...) {
    ::unlink(file.path.c_str());
    throw;
  }
  size_ = head.size();
  descriptor_ = std::move(file.descriptor);
}

void AppendFile::append(std::span<const std::byte> bytes) {
  os::write_all(descriptor_, bytes, path_, size_);
  size_ += bytes.size();
}

void append_to_file(const std::filesystem::path& path, std::string_view text) {
  std::optional<BlockingCall> waits;
  if (path_kind(path) == PathKind::kPipe) waits.emplace();
  const Descriptor file = os::open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (!file.is_open()) os::fail(path, "cannot open for appending", errno);
  os::write_all(file, std::as_bytes(std::span(text)), path, 0);
}

}  // namespace headrace
