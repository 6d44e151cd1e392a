#include "headrace/cache/disk/segment_format.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

using namespace std::string_view_literals;

constexpr auto kSegmentMagic = "HRSEG\r\n\0"sv;
constexpr auto kIndexMagic = "HRIDX\r\n\0"sv;
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kIndexHeadBytes = 40, kIndexEntryBytes = 40;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::ranges::equal(bytes.first(magic.size()), bytes_of(magic));
}

// Returns all but the last eight bytes if those are their checksum.
std::optional<std::span<const std::byte>> checked(std::span<const std::byte> bytes) {
  if (bytes.size() < kChecksumBytes) return {};
  const auto body = bytes.first(bytes.size() - kChecksumBytes);
  if (ByteReader(bytes.last(kChecksumBytes), {}, 0).u64() != xxh3(body)) return {};
  return body;
}

std::vector<std::byte> with_checksum(const ByteWriter& body) {
  ByteWriter whole;
  whole.raw(body.bytes()).u64(xxh3(body.bytes()));
  return {whole.bytes().begin(), whole.bytes().end()};
}

// The part of an entry's header before its checksum. On the stack: it is made for every sample read.
class EntryDescription {
 public:
  explicit EntryDescription(const SegmentEntry& entry) noexcept {
    for (const char letter : kEntryMagic) bytes_[used_++] = static_cast<std::byte>(letter);
    put(static_cast<std::uint64_t>(entry.codec), 4);
    put(entry.record, 8);
    put(entry.sample_bytes, 4);
    put(entry.stored_bytes, 4);
  }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  void put(std::uint64_t value, int size) noexcept {
    for (int i = 0; i < size; ++i) bytes_[used_++] = static_cast<std::byte>(value >> 8 * i);
  }

  std::array<std::byte, kEntryHeaderBytes - kChecksumBytes> bytes_;
  std::size_t used_ = 0;
};

bool is_codec(std::uint32_t value) { return value <= static_cast<std::uint32_t>(SampleCodec::kZstd); }

}  // namespace

std::vector<std::byte> encode_segment_header(const SegmentStream& stream) {
  ByteWriter writer;
  writer.raw(bytes_of(kSegmentMagic)).u32(kVersion).u32(kSegmentHeaderBytes);
  writer.u64(stream.fingerprint).u64(stream.records);
  return with_checksum(writer);
}

std::optional<SegmentStream> decode_segment_header(std::span<const std::byte> bytes) {
  const auto body = checked(bytes);
  if (!body || bytes.size() != kSegmentHeaderBytes || !begins_with(*body, kSegmentMagic)) return {};
  ByteReader reader(body->subspan(kSegmentMagic.size()), {}, 0);
  if (reader.u32() != kVersion || reader.u32() != kSegmentHeaderBytes) return {};
  const std::uint64_t fingerprint = reader.u64();
  return SegmentStream{.fingerprint = fingerprint, .records = reader.u64()};
}

bool is_segment_header(std::span<const std::byte> bytes, const SegmentStream& stream) {
  const auto found = decode_segment_header(bytes);
  return found && found->fingerprint == stream.fingerprint && found->records == stream.records;
}

std::uint64_t checksum_of(const SegmentEntry& entry, std::span<const std::byte> stored,
                          std::uint64_t fingerprint) {
  return xxh3(stored, xxh3(EntryDescription(entry).bytes(), fingerprint));
}

void append_entry_header(const SegmentEntry& entry, std::vector<std::byte>& to) {
  ByteWriter writer;
  writer.raw(EntryDescription(entry).bytes()).u64(entry.checksum);
  to.insert(to.end(), writer.bytes().begin(), writer.bytes().end());
}

std::optional<SegmentEntry> decode_entry_header(std::span<const std::byte> bytes, std::uint64_t at) {
  if (bytes.size() != kEntryHeaderBytes || !begins_with(bytes, kEntryMagic)) return {};
  ByteReader reader(bytes.subspan(kEntryMagic.size()), {}, 0);
  const std::uint32_t codec = reader.u32();
  if (!is_codec(codec)) return {};
  SegmentEntry entry{.record = reader.u64(), .offset = at + kEntryHeaderBytes};
  entry.sample_bytes = reader.u32();
  entry.stored_bytes = reader.u32();
  entry.codec = static_cast<SampleCodec>(codec);
  entry.checksum = reader.u64();
  return entry;
}

std::vector<std::byte> encode_index(const SegmentStream& stream, std::uint64_t segment_bytes,
                                    std::span<const SegmentEntry> entries) {
  ByteWriter writer;
  writer.raw(bytes_of(kIndexMagic)).u32(kVersion).u32(0);
  writer.u64(stream.fingerprint).u64(segment_bytes).u64(entries.size());
  for (const SegmentEntry& entry : entries) {
    writer.u64(entry.record).u64(entry.offset).u32(entry.sample_bytes).u32(entry.stored_bytes);
    writer.u32(static_cast<std::uint32_t>(entry.codec)).u32(0).u64(entry.checksum);
  }
  return with_checksum(writer);
}

std::optional<std::vector<SegmentEntry>> decode_index(std::span<const std::byte> bytes,
                                                      const SegmentStream& stream, std::uint64_t segment_bytes) {
  const auto body = checked(bytes);
  if (!body || body->size() < kIndexHeadBytes || !begins_with(*body, kIndexMagic)) return {};
  ByteReader reader(body->subspan(kIndexMagic.size()), {}, 0);
  if (reader.u32() != kVersion || reader.u32() != 0 || reader.u64() != stream.fingerprint) return {};
  if (reader.u64() > segment_bytes) return {};
  const std::uint64_t count = reader.u64();
  if (count != reader.left() / kIndexEntryBytes || reader.left() % kIndexEntryBytes != 0) return {};
  std::vector<SegmentEntry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    SegmentEntry entry{.record = reader.u64(), .offset = reader.u64()};
    entry.sample_bytes = reader.u32();
    entry.stored_bytes = reader.u32();
    const std::uint32_t codec = reader.u32();
    reader.u32();
    entry.checksum = reader.u64();
    if (!is_codec(codec) || entry.record >= stream.records) return {};
    if (entry.offset > segment_bytes || entry.stored_bytes > segment_bytes - entry.offset) return {};
    entry.codec = static_cast<SampleCodec>(codec);
    entries.push_back(entry);
  }
  return entries;
}

namespace {

constexpr std::uint64_t kTrial = 32;  // samples
constexpr double kWorthWhile = 0.85;  // of the size, at most
constexpr int kLevel = 1;

struct Free {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// Returns the compressed size; 0 if the sample cannot be compressed.
std::size_t compress(std::span<const std::byte> sample, std::vector<std::byte>& into) {
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (context == nullptr) return 0;
  into.resize(ZSTD_compressBound(sample.size()));
  const std::size_t size =
      ZSTD_compressCCtx(context.get(), into.data(), into.size(), sample.data(), sample.size(), kLevel);
  return ZSTD_isError(size) != 0U ? 0 : size;
}

}  // namespace

SampleCompressor::Stored SampleCompressor::store(std::span<const std::byte> sample, std::vector<std::byte>& into) {
  const Stored plain{.codec = SampleCodec::kNone, .bytes = sample};
  if (tried_.load(std::memory_order_relaxed) < kTrial) {
    const std::size_t size = compress(sample, into);
    plain_bytes_.fetch_add(sample.size(), std::memory_order_relaxed);
    compressed_bytes_.fetch_add(size == 0 ? sample.size() : size, std::memory_order_relaxed);
    tried_.fetch_add(1, std::memory_order_relaxed);
    return plain;
  }
  const auto smaller = static_cast<double>(compressed_bytes_.load(std::memory_order_relaxed));
  if (smaller > kWorthWhile * static_cast<double>(plain_bytes_.load(std::memory_order_relaxed))) return plain;
  const std::size_t size = compress(sample, into);
  if (size == 0 || size >= sample.size()) return plain;
  return {.codec = SampleCodec::kZstd, .bytes = std::span(into).first(size)};
}

bool SampleCompressor::expand(std::span<const std::byte> stored, std::span<std::byte> sample) noexcept {
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) return false;
  return ZSTD_decompressDCtx(context.get(), sample.data(), sample.size(), stored.data(), stored.size()) ==
         sample.size();
}

}  // namespace headrace
