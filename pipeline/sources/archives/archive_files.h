// The regular files of an archive, one after the other: tar, compressed as a whole or not, or zip.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/pipeline/sources/archives/stored_file.h"

namespace headrace {

struct ArchiveFile {
  std::string path;          // relative, '/' between names
  StoredFile place;          // in an archive compressed as a whole: within the unpacked bytes
  std::uint64_t header = 0;  // of a plain tar: the offset from which on it and the files after it can be read
};

// One thread at a time. Failures are DataErrors with archive and offset.
class ArchiveFiles {
 public:
  ArchiveFiles() = default;
  virtual ~ArchiveFiles() = default;
  ArchiveFiles(const ArchiveFiles&) = delete;
  ArchiveFiles& operator=(const ArchiveFiles&) = delete;

  // Returns the next file; std::nullopt at the end, when an archive compressed as a whole has been read to its end
  // and its checksums are verified. A link is the file of the archive that it stands for; in an archive compressed
  // as a whole only if that is small, as labels are. Skips unreadable files, and those whose names leads_out(),
  // but throws kUnsupported for one with an image's name: a link to no file of the archive, an encrypted one.
  // Symbolic links out of the archive are left out.
  virtual std::optional<ArchiveFile> next() = 0;
  // Returns the folders among the members so far, with '/' at the end of their paths.
  const std::vector<std::string>& folders() const noexcept { return folders_; }
  // Returns how many symbolic links out of the archive were left out so far.
  std::uint64_t links_out() const noexcept { return links_out_; }
  // Reads all bytes of the file that next() returned last, at most once. REQUIRES: into.size() is the file's size.
  virtual void read(std::span<std::byte> into) = 0;
  // Starts reading ahead, if all files will be read, after so many bytes of other archives. Only a hint.
  virtual void read_ahead(std::uint64_t /*bytes_before*/) {}
  // Returns false if the archive is compressed as a whole: its files cannot be read by position later.
  virtual bool has_positions() const noexcept = 0;

 protected:
  std::vector<std::string> folders_;
  std::uint64_t links_out_ = 0;
};

// Adds so many links that were left out to those of other archives.
void add_links_out(std::uint64_t links, std::vector<LeftOut>& to);

// Returns whether the file, unpacked if it is compressed, starts like a tar or zip archive. Throws DataError like
// open_input().
bool is_archive(const std::filesystem::path& path);

// Opens a tar whose bytes come once, in order.
std::unique_ptr<ArchiveFiles> open_tar(std::unique_ptr<ByteInput> input);

// Opens a tar or zip archive to read all of it (open_archive.h has kept indexes, too); `window_limit` as in
// open_input().
std::unique_ptr<ArchiveFiles> list_archive(const std::filesystem::path& path,
                                           std::uint64_t window_limit = kWindowLimit);
// Opens a plain tar to read the files from ArchiveFile::header on.
std::unique_ptr<ArchiveFiles> list_tar_from(const std::filesystem::path& path, std::uint64_t header);
// Opens bytes of a plain tar: of whole files, from ArchiveFile::header on.
std::unique_ptr<ArchiveFiles> list_tar_part(const std::filesystem::path& path, std::uint64_t header,
                                            std::vector<std::byte> bytes);

}  // namespace headrace
