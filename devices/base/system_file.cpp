#include "headrace/devices/base/system_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

std::atomic<FileFaults*> injected_faults{nullptr};

// Taking a name out of its slot transfers ownership. A signal handler takes names and never frees them.
std::array<std::atomic<char*>, kMaxTemporaryNames> names;
static_assert(std::atomic<char*>::is_always_lock_free, "a signal handler must not wait for a lock");

}  // namespace

FileFaults* set_file_faults(FileFaults* faults) noexcept { return injected_faults.exchange(faults); }

void Descriptor::close() noexcept {
  if (value_ >= 0) ::close(std::exchange(value_, -1));
}

TemporaryName::TemporaryName(const std::filesystem::path& path) {
  // Absolute: the working directory may change.
  name_ = ::strdup(std::filesystem::absolute(path).c_str());
  if (name_ == nullptr) return;
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    char* none = nullptr;
    if (!names[slot].compare_exchange_strong(none, name_)) continue;
    slot_ = slot + 1;
    return;
  }
  std::free(std::exchange(name_, nullptr));
}

TemporaryName::TemporaryName(TemporaryName&& other) noexcept
    : slot_(std::exchange(other.slot_, 0)), name_(std::exchange(other.name_, nullptr)) {}

TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
  if (this != &other) {
    release();
    slot_ = std::exchange(other.slot_, 0);
    name_ = std::exchange(other.name_, nullptr);
  }
  return *this;
}

TemporaryName::~TemporaryName() { release(); }

void TemporaryName::release() noexcept {
  if (slot_ == 0) return;
  char* mine = name_;
  if (names[slot_ - 1].compare_exchange_strong(mine, nullptr)) std::free(name_);
  slot_ = 0;
  name_ = nullptr;
}

int remove_temporary_files() noexcept {
  int removed = 0;
  for (std::atomic<char*>& slot : names) {
    const char* name = slot.exchange(nullptr);
    if (name != nullptr && ::unlink(name) == 0) ++removed;
  }
  return removed;
}

namespace os {
namespace {

// Creates a file; never opens an existing one, nor the target of a link.
Descriptor create_new(const std::filesystem::path& path) {
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
}

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<std::uint64_t> counter{0};
  std::string name = path.filename().string();
  name.append(".").append(std::to_string(::getpid()));
  name.append(".").append(std::to_string(counter.fetch_add(1))).append(".tmp");
  return folder_of(path) / name;
}

std::string hint_for(const std::filesystem::path& path, const std::string& what, int error) {
  const bool writes = what == "cannot create" || what == "cannot open for appending";
  switch (error) {
    case ENOENT: return writes ? "make the folder " + path.parent_path().string() + " first" : "check the path";
    case ENOTDIR: return "check the path: a part of it is a file where a folder is needed";
    case ELOOP: return "check where the symbolic links of the path lead";
    case EEXIST: return "name another path: a file of that name is there";
    case EACCES:
    case EPERM: return "check the permissions of the file and of the folders above it";
    case EROFS: return "name a path on a file system that can be written";
    case ENAMETOOLONG: return "give a shorter path";
    case EMFILE:
    case ENFILE: return "raise the limit on open files (ulimit -n)";
    case ENOSPC:
    case EDQUOT: return "free some space or choose another folder";
    case EFBIG: return "raise the limit on the size of files (ulimit -f) or write to another file system";
    case EIO: return "check the disk or the network that the file lies on, then run again";
    default: return {};
  }
}

}  // namespace

void fail(const std::filesystem::path& path, const std::string& what, int error, std::uint64_t offset) {
  if (has_nul(path)) {
    throw DataError(ErrorCode::kNotFound, what + ": no file has a NUL byte in its name", {.source = path.string()},
                    "check the path");
  }
  const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  throw DataError(code, what + ": " + std::system_category().message(error),
                  {.source = path.string(), .offset = offset}, hint_for(path, what, error));
}

int fault(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset, std::size_t* bytes) {
  FileFaults* faults = injected_faults.load(std::memory_order_acquire);
  if (faults == nullptr) return 0;
  std::size_t none = 0;
  return faults->before(operation, path, offset, bytes != nullptr ? *bytes : none);
}

bool has_nul(const std::filesystem::path& path) noexcept { return path.native().find('\0') != std::string::npos; }

bool look_at(const std::filesystem::path& path, struct stat& status) noexcept {
  errno = EINVAL;
  return !has_nul(path) && ::stat(path.c_str(), &status) == 0;
}

bool look_at_link(const std::filesystem::path& path, struct stat& status) noexcept {
  errno = EINVAL;
  return !has_nul(path) && ::lstat(path.c_str(), &status) == 0;
}

Descriptor open(const std::filesystem::path& path, int flags, mode_t mode) {
  if (has_nul(path)) {
    errno = EINVAL;
    return Descriptor();
  }
  if (const int error = fault(FileOperation::kOpen, path); error != 0) {
    errno = error;
    return Descriptor();
  }
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return Descriptor(descriptor);
}

namespace {

// `write` takes what is left and where it belongs, and returns what the system's call does.
template <typename Write>
void write_with(const Write& write, std::span<const std::byte> bytes, const std::filesystem::path& path,
                std::uint64_t offset) {
  while (!bytes.empty()) {
    std::size_t wanted = std::min(bytes.size(), kMaxCall);
    if (const int error = fault(FileOperation::kWrite, path, offset, &wanted))
      fail(path, "cannot write", error, offset);
    const ssize_t count = write(bytes.first(wanted), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot write", errno, offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

void write_all(const Descriptor& to, std::span<const std::byte> bytes, const std::filesystem::path& path,
               std::uint64_t offset) {
  write_with([&](auto part, std::uint64_t) { return ::write(to.get(), part.data(), part.size()); }, bytes, path,
             offset);
}

void write_at(const Descriptor& to, std::span<const std::byte> bytes, const std::filesystem::path& path,
              std::uint64_t offset) {
  write_with(
      [&](auto part, std::uint64_t at) {
        return ::pwrite(to.get(), part.data(), part.size(), static_cast<off_t>(at));
      },
      bytes, path, offset);
}

void sync_file(const Descriptor& file, const std::filesystem::path& path) {
  if (const int error = fault(FileOperation::kSync, path); error != 0) fail(path, "cannot sync", error);
  // Devices and pipes cannot be synced and return EINVAL.
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail(path, "cannot sync", errno);
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor = open(folder, O_RDONLY | O_DIRECTORY);
  if (!descriptor.is_open()) fail(folder, "cannot open the folder", errno);
  if (const int error = fault(FileOperation::kSync, folder); error != 0)
    fail(folder, "cannot sync the folder", error);
  // Some file systems cannot sync a folder and return EINVAL; the rename is then as safe as it can be.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) fail(folder, "cannot sync the folder", errno);
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  const int error = has_nul(to) ? EINVAL : fault(FileOperation::kRename, to);
  if (error != 0 || std::rename(from.c_str(), to.c_str()) != 0)
    fail(to, "cannot replace", error != 0 ? error : errno);
}

int lock(const Descriptor& file, const std::filesystem::path& path, int how) noexcept {
  if (const int error = fault(FileOperation::kLock, path); error != 0) return error;
  return ::flock(file.get(), how) == 0 ? 0 : errno;
}

bool has_no_locks(int error) noexcept {  // Lustre and FUSE without flock, NFS without its lock service
  return error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP;  // which is ENOTSUP on Linux
}

void warn_without_locks(const std::filesystem::path& folder) noexcept {
  try {
    static std::mutex mutex;
    static std::set<std::filesystem::path> warned;
    std::error_code ignored;
    const std::scoped_lock guard(mutex);
    if (!warned.insert(std::filesystem::weakly_canonical(folder, ignored)).second) return;
    std::fprintf(stderr,
                 "headrace: warning: the file system of %s has no locks (flock): nothing keeps two processes from "
                 "writing there at once, so let one at a time use it; unfinished files (*.tmp) of processes that "
                 "were killed are removed only after a minute\n",
                 printable(folder.string()).c_str());
  } catch (...) {  // work goes on without the warning
  }
}

int lock_for_writer(const Descriptor& file, const std::filesystem::path& path) noexcept {
  const int error = lock(file, path, LOCK_EX);
  if (!has_no_locks(error)) return error;
  warn_without_locks(folder_of(path));
  return 0;
}

Descriptor create_locked(const std::filesystem::path& path) {
  Descriptor file = create_new(path);
  if (!file.is_open()) fail(path, "cannot create", errno);
  if (const int error = lock_for_writer(file, path); error != 0) fail(path, "cannot lock", error);
  return file;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

TemporaryFile create_temporary(const std::filesystem::path& meant) {
  while (true) {
    TemporaryFile file{.path = temporary_beside(meant), .listed = {}, .descriptor = {}};
    file.listed = TemporaryName(file.path);
    file.descriptor = create_new(file.path);
    if (!file.descriptor.is_open() && errno == EEXIST) continue;
    if (!file.descriptor.is_open()) fail(meant, "cannot create", errno);
    if (const int error = lock_for_writer(file.descriptor, file.path); error != 0)
      fail(file.path, "cannot lock", error);
    return file;
  }
}

}  // namespace os
}  // namespace headrace
