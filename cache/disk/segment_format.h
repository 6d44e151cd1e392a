// The fixed parts of a segment and its index (cache/FORMAT.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headrace {

inline constexpr std::uint64_t kSegmentHeaderBytes = 40;
inline constexpr std::uint64_t kEntryHeaderBytes = 32;
inline constexpr std::string_view kEntryMagic = "HREN";
inline constexpr std::uint64_t kMaxSampleBytes = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 40;

enum class SampleCodec : std::uint32_t { kNone = 0, kZstd = 1 };

// The stream to which a segment belongs.
struct SegmentStream {
  std::uint64_t fingerprint = 0;
  std::uint64_t records = 0;  // of the source
};

// A sample in a segment.
struct SegmentEntry {
  std::uint64_t record = 0;
  std::uint64_t offset = 0;  // of the stored bytes
  std::uint32_t sample_bytes = 0;
  std::uint32_t stored_bytes = 0;
  SampleCodec codec = SampleCodec::kNone;
  std::uint64_t checksum = 0;

  std::uint64_t end() const noexcept { return offset + stored_bytes; }
  friend bool operator==(const SegmentEntry&, const SegmentEntry&) = default;
};

std::vector<std::byte> encode_segment_header(const SegmentStream& stream);
// Returns false for another version, a damaged header or another stream.
bool is_segment_header(std::span<const std::byte> bytes, const SegmentStream& stream);
// Returns the stream named by a sound header of this version.
std::optional<SegmentStream> decode_segment_header(std::span<const std::byte> bytes);

// Returns a checksum over the stored bytes and the entry's other values.
std::uint64_t checksum_of(const SegmentEntry& entry, std::span<const std::byte> stored, std::uint64_t fingerprint);
void append_entry_header(const SegmentEntry& entry, std::vector<std::byte>& to);
// Decodes `bytes`, read at offset `at` of the segment. Returns std::nullopt if they are not an entry's header.
std::optional<SegmentEntry> decode_entry_header(std::span<const std::byte> bytes, std::uint64_t at);

std::vector<std::byte> encode_index(const SegmentStream& stream, std::uint64_t segment_bytes,
                                    std::span<const SegmentEntry> entries);
// Returns the entries, each within `segment_bytes`; std::nullopt if the index is damaged, belongs to another
// stream, or describes more than the segment now holds.
std::optional<std::vector<SegmentEntry>> decode_index(std::span<const std::byte> bytes,
                                                      const SegmentStream& stream, std::uint64_t segment_bytes);

// Compresses samples if that pays off.

// Thread-safe. Tries zstd on the first samples, then uses it for all or for none: decoded photographs do not
// shrink, label maps and screenshots do.
class SampleCompressor {
 public:
  // The bytes to store, and their codec. Compressed bytes are in `into`.
  struct Stored {
    SampleCodec codec = SampleCodec::kNone;
    std::span<const std::byte> bytes;
  };
  Stored store(std::span<const std::byte> sample, std::vector<std::byte>& into);

  // Expands zstd's bytes into `sample`. Returns false if they are not its compressed bytes.
  static bool expand(std::span<const std::byte> stored, std::span<std::byte> sample) noexcept;

 private:
  std::atomic<std::uint64_t> tried_{0}, plain_bytes_{0}, compressed_bytes_{0};
};

}  // namespace headrace
