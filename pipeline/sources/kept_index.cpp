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

namespace headrace {
namespace {

constexpr std::string_view kIndexMagic("\x89HDRI\r\n\x1A", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kMaxIndex = std::uint64_t{4} << 30;   // bytes, packed or not
constexpr std::uint64_t kMinLocal = std::uint64_t{32} << 20;  // smaller files are read as quickly as an index
constexpr int kLevel = 3;

}  // namespace

KeptIndex::KeptIndex(const std::filesystem::path& file, std::string_view reader) : reader_(reader) {
  const std::filesystem::path folder = cache_folder("HEADRACE_INDEX_FOLDER", "index");
  if (folder.empty() || folder == "off" || !(is_url(file) ? identify_remote(file) : identify_local(file))) return;
  const std::string key = name_ + "\n" + reader_;
  path_ = folder / (xxh3_128_hex(std::as_bytes(std::span(key))) + ".index");
}

bool KeptIndex::identify_remote(const std::filesystem::path& file) {
  const File opened = File::open(file);
  name_ = opened.remote()->requested();
  size_ = opened.size();
  version_ = opened.modified_ns();
  return opened.remote()->is_versioned();
}

bool KeptIndex::identify_local(const std::filesystem::path& file) {
  const FileFacts facts = look_at_file(file);
  if (facts.size < kMinLocal) return false;
  const FileIdentity identity = identity_of(file);
  name_ = std::filesystem::absolute(file).lexically_normal().string();
  size_ = facts.size;
  const std::array<std::uint64_t, 4> all{identity.device, identity.inode, facts.modified_ns, facts.changed_ns};
  version_ = xxh3(std::as_bytes(std::span(all)));
  return true;
}

std::string KeptIndex::header(std::uint64_t bytes) const {
  ByteWriter header;
  header.raw(std::as_bytes(std::span(kIndexMagic))).u32(kVersion).text(reader_).text(name_);
  header.u64(size_).u64(version_).u64(bytes);
  return {reinterpret_cast<const char*>(header.bytes().data()), header.bytes().size()};
}

std::optional<std::vector<std::byte>> KeptIndex::find() const {
  if (!is_kept() || path_kind(path_) != PathKind::kFile) return std::nullopt;
  try {
    const std::vector<std::byte> file = read_whole_file(path_, kMaxIndex);
    const std::size_t header_bytes = header(0).size();
    if (file.size() < header_bytes + sizeof(std::uint64_t)) return std::nullopt;
    const std::span<const std::byte> bytes = std::span(file).first(file.size() - sizeof(std::uint64_t));
    const std::uint64_t checksum = little_endian(file, bytes.size(), sizeof checksum);
    if (checksum != xxh3(bytes)) return std::nullopt;
    const std::uint64_t count = little_endian(file, header_bytes - sizeof count, sizeof count);
    std::vector<std::byte> index(static_cast<std::size_t>(std::min(count, kMaxIndex)));
    const std::string_view begins(reinterpret_cast<const char*>(bytes.data()), header_bytes);
    if (begins != header(index.size())) return std::nullopt;
    const std::span<const std::byte> packed = bytes.subspan(header_bytes);
    const std::size_t unpacked = ZSTD_decompress(index.data(), index.size(), packed.data(), packed.size());
    if (ZSTD_isError(unpacked) != 0 || unpacked != index.size()) return std::nullopt;
    return index;
  } catch (const std::exception&) {  // the file is read again
    return std::nullopt;
  }
}

void KeptIndex::keep(std::span<const std::byte> index) const noexcept {
  if (!is_kept() || index.size() > kMaxIndex) return;
  try {
    std::vector<std::byte> packed(ZSTD_compressBound(index.size()));
    const std::size_t size = ZSTD_compress(packed.data(), packed.size(), index.data(), index.size(), kLevel);
    if (ZSTD_isError(size) != 0) return;
    const std::string begins = header(index.size());
    ByteWriter file;
    file.raw(std::as_bytes(std::span(begins))).raw(std::span(packed).first(size));
    file.u64(xxh3(file.bytes()));
    make_folders(path_.parent_path());
    FileWriter writer(path_, Appears::kWhole, Links::kReplaced);
    writer.append(file.bytes());
    writer.commit(Durability::kLater);
  } catch (const std::exception&) {  // without an index the file is read again
  }
}

}  // namespace headrace
