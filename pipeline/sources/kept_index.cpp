#include "headrace/pipeline/sources/kept_index.h"

#include <zstd.h>

#include <algorithm>
#include <array>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/index_set.h"

namespace headrace {
namespace {

constexpr std::string_view kIndexMagic("\x89HDRI\r\n\x1A", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kMaxIndex = std::uint64_t{4} << 30;   // bytes, packed or not
constexpr std::uint64_t kMinLocal = std::uint64_t{32} << 20;  // smaller files are read as quickly as an index
constexpr int kLevel = 3;
constexpr std::uint64_t kEndLookedAt = std::uint64_t{64} << 10;  // bytes at either end of a file

}  // namespace

KeptIndex::KeptIndex(const std::filesystem::path& file, std::string_view reader)
    : file_(file), reader_(reader), is_remote_(is_url(file)) {
  const std::filesystem::path folder = cache_folder("HEADRACE_INDEX_FOLDER", "index");
  if (folder.empty() || folder == "off" || !(is_remote_ ? identify_remote(file) : identify_local(file))) return;
  path_ = folder / (key_of(identity_) + ".index");
}

bool KeptIndex::identify_remote(const std::filesystem::path& file) {
  const File opened = File::open(file);
  identity_ = {.name = opened.remote()->requested(), .size = opened.size(), .version = opened.modified_ns()};
  return opened.remote()->is_versioned();
}

bool KeptIndex::identify_local(const std::filesystem::path& file) {
  const FileFacts facts = look_at_file(file);
  if (facts.size < kMinLocal) return false;
  const FileIdentity identity = identity_of(file);
  const std::array<std::uint64_t, 4> all{identity.device, identity.inode, facts.modified_ns, facts.changed_ns};
  identity_ = {.name = std::filesystem::absolute(file).lexically_normal().string(),
               .size = facts.size,
               .version = xxh3(std::as_bytes(std::span(all)))};
  return true;
}

// A remote file has its ETag wherever it is read from; of a local one both ends are looked at.
KeptIndex::Identity KeptIndex::portable() const {
  Identity of{.name = file_.filename().string(), .size = identity_.size, .version = identity_.version};
  if (is_remote_) return of;
  const File file = File::open(file_);
  std::vector<std::byte> ends(static_cast<std::size_t>(std::min(2 * kEndLookedAt, file.size())));
  const std::size_t half = ends.size() / 2;
  file.read_exact(0, std::span(ends).first(half));
  file.read_exact(file.size() - (ends.size() - half), std::span(ends).subspan(half));
  of.version = xxh3(ends);
  return of;
}

std::string KeptIndex::key_of(const Identity& of) const {
  const std::string key = of.name + "\n" + reader_;
  return xxh3_128_hex(std::as_bytes(std::span(key)));
}

std::string KeptIndex::header(const Identity& of, std::uint64_t bytes) const {
  ByteWriter header;
  header.raw(std::as_bytes(std::span(kIndexMagic))).u32(kVersion).text(reader_).text(of.name);
  header.u64(of.size).u64(of.version).u64(bytes);
  return {reinterpret_cast<const char*>(header.bytes().data()), header.bytes().size()};
}

std::vector<std::byte> KeptIndex::seal(const Identity& of, std::span<const std::byte> index) const {
  std::vector<std::byte> packed(ZSTD_compressBound(index.size()));
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), index.data(), index.size(), kLevel);
  if (ZSTD_isError(size) != 0) throw Error(ErrorCode::kInternal, ZSTD_getErrorName(size));
  const std::string begins = header(of, index.size());
  ByteWriter sealed;
  sealed.raw(std::as_bytes(std::span(begins))).raw(std::span(packed).first(size));
  sealed.u64(xxh3(sealed.bytes()));
  return {sealed.bytes().begin(), sealed.bytes().end()};
}

std::optional<std::vector<std::byte>> KeptIndex::open(const Identity& of,
                                                      std::span<const std::byte> sealed) const {
  const std::size_t header_bytes = header(of, 0).size();
  if (sealed.size() < header_bytes + sizeof(std::uint64_t)) return std::nullopt;
  const std::span<const std::byte> bytes = sealed.first(sealed.size() - sizeof(std::uint64_t));
  const std::uint64_t checksum = little_endian(sealed, bytes.size(), sizeof checksum);
  if (checksum != xxh3(bytes)) return std::nullopt;
  const std::uint64_t count = little_endian(sealed, header_bytes - sizeof count, sizeof count);
  std::vector<std::byte> index(static_cast<std::size_t>(std::min(count, kMaxIndex)));
  const std::string_view begins(reinterpret_cast<const char*>(bytes.data()), header_bytes);
  if (begins != header(of, index.size())) return std::nullopt;
  const std::span<const std::byte> packed = bytes.subspan(header_bytes);
  const std::size_t unpacked = ZSTD_decompress(index.data(), index.size(), packed.data(), packed.size());
  if (ZSTD_isError(unpacked) != 0 || unpacked != index.size()) return std::nullopt;
  return index;
}

std::optional<std::vector<std::byte>> KeptIndex::find_here() const {
  if (path_kind(path_) == PathKind::kFile) {
    if (auto index = open(identity_, read_whole_file(path_, kMaxIndex))) return index;
  }
  const std::shared_ptr<const IndexSet> set = IndexSet::beside(file_);
  if (set == nullptr) return std::nullopt;
  // The ends of a local file do not tell whether its middle was rewritten since.
  if (!is_remote_ && look_at_file(file_).modified_ns > set->modified_ns()) return std::nullopt;
  const Identity of = portable();
  const std::optional<std::vector<std::byte>> sealed = set->find(key_of(of));
  return sealed ? open(of, *sealed) : std::nullopt;
}

std::optional<std::vector<std::byte>> KeptIndex::find() const {
  if (!is_kept()) return std::nullopt;
  try {
    std::optional<std::vector<std::byte>> index = find_here();
    if (index) offer(*index);
    return index;
  } catch (const std::exception&) {  // the file is read again
    return std::nullopt;
  }
}

void KeptIndex::offer(std::span<const std::byte> index) const {
  if (!IndexCollector::is_there()) return;
  const Identity of = portable();
  IndexCollector::offer(key_of(of), seal(of, index));
}

void KeptIndex::keep(std::span<const std::byte> index) const noexcept {
  if (!is_kept() || index.size() > kMaxIndex) return;
  try {
    offer(index);
    make_folders(path_.parent_path());
    FileWriter writer(path_, Appears::kWhole, Links::kReplaced);
    writer.append(seal(identity_, index));
    writer.commit(Durability::kLater);
  } catch (const std::exception&) {  // without an index the file is read again
  }
}

}  // namespace headrace
