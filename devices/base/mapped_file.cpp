#include "headrace/devices/base/mapped_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "headrace/devices/base/system_file.h"

namespace headrace {
FilePart::FilePart(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const bool may_map = bytes >= kMinMapped && !file.is_remote() && offset + bytes <= file.size();
  if (may_map && !is_shared_by_hosts(file.path())) {
    const auto before = static_cast<std::size_t>(offset % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
    void* const map = ::mmap(nullptr, before + size, PROT_READ, MAP_SHARED, file.descriptor_.get(),
                             static_cast<off_t>(offset - before));
    if (map != MAP_FAILED) {
      mapped_ = {static_cast<std::byte*>(map), before + size};
      bytes_ = mapped_.subspan(before);
      return;
    }
  }
  copied_.resize(size);
  file.read_exact(offset, copied_);
  bytes_ = copied_;
}

FilePart::~FilePart() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

FilePart::FilePart(FilePart&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      copied_(std::move(other.copied_)),
      mapped_(std::exchange(other.mapped_, {})) {}

FilePart& FilePart::operator=(FilePart&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(copied_, other.copied_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

bool is_shared_by_hosts(const std::filesystem::path& path) {
  constexpr std::array<std::uint32_t, 8> kTypes = {
      0x6969,     0x517B,     0xFF534D42, 0xFE534D42,   // NFS, SMB
      0x0BD00BD0, 0x00C36400, 0x47504653, 0x5346414F};  // Lustre, Ceph, GPFS, AFS
  struct statfs status {};
  return ::statfs(path.c_str(), &status) == 0 &&
         std::ranges::find(kTypes, static_cast<std::uint32_t>(status.f_type)) != kTypes.end();
}

void MappedFile::create(const std::filesystem::path& path, std::span<const std::byte> head, std::uint64_t bytes) {
  os::TemporaryFile made = os::create_temporary(path);
  auto wanted = static_cast<std::size_t>(bytes);
  int error = os::fault(FileOperation::kWrite, made.path, 0, &wanted);
  if (error == 0) error = ::posix_fallocate(made.descriptor.get(), 0, static_cast<off_t>(bytes));
  if (error == 0 && wanted < bytes) error = ENOSPC;
  if (error != 0) {
    ::unlink(made.path.c_str());
    os::fail(path, "cannot make room for", error);
  }
  const Descriptor anywhere = os::open(made.path, O_RDWR | O_NOFOLLOW);  // a temporary file grows at its end alone
  if (!anywhere.is_open()) os::fail(made.path, "cannot open for writing", errno);
  os::write_at(anywhere, head, made.path, 0);
  os::rename_file(made.path, path);
  made.listed.release();
}

bool MappedFile::remove_unused(const std::filesystem::path& path) {
  const Descriptor held = os::open(path, O_RDONLY | O_NOFOLLOW);
  if (!held.is_open() || os::lock(held, path, LOCK_EX | LOCK_NB) != 0) return false;
  remove_file(path);
  return true;
}

MappedFile::MappedFile(const std::filesystem::path& path)
    : file_(File::open(path)), writable_(os::open(path, O_RDWR | O_NOFOLLOW)) {
  if (!writable_.is_open()) os::fail(path, "cannot open for writing", errno);
}

MappedFile::~MappedFile() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

void MappedFile::map(std::uint64_t bytes) {
  void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, writable_.get(), 0);
  if (map == MAP_FAILED) os::fail(path(), "cannot map", errno);
  map_ = static_cast<std::byte*>(map);
  map_bytes_ = bytes;
}

bool MappedFile::use() noexcept { return os::lock(writable_, path(), LOCK_SH | LOCK_NB) != EWOULDBLOCK; }

void MappedFile::touch() const noexcept { ::futimens(writable_.get(), nullptr); }

void MappedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  os::write_at(writable_, bytes, path(), offset);
}

void MappedFile::will_read(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  ::posix_fadvise(writable_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

}  // namespace headrace
