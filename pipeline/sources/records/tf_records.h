// Examples in TFRecord files: found by one walk over the record lengths, read by position. Compressed files have
// no positions: they are unpacked into memory when opened.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/pipeline/sources/kept_index.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/records/tf_example.h"

namespace headrace {

// The payload of a record is preceded by its length (u64) and the length's checksum (u32), and followed by its own
// checksum; all little-endian.
namespace tf_frame {

inline constexpr std::uint64_t kHeader = 12, kFooter = 4;
// Return whether the checksum of a header's length holds, and that of a payload with its footer.
bool header_holds(std::span<const std::byte> header);
bool payload_holds(std::span<const std::byte> payload_and_footer);

}  // namespace tf_frame

// Returns the packing of a TFRecord file; std::nullopt for any other file. Plain is tried first: its length may
// look like a zlib header.
std::optional<Packing> tf_packing(const std::filesystem::path& path);
// Opens the files as a stream of shards: TfRecordOptions::indexed is false.
SourcePtr tf_shards(std::string name, FoundShards shards, const TfRecordOptions& options);
// Returns whether the file, plain or compressed, starts with a record's length and that length's checksum.
bool is_tf_record(const std::filesystem::path& path);
// Returns whether the name is x.tfrecord(.gz, -00000-of-00004), or train-00000-of-00004 with such content.
bool is_tf_shard(const std::filesystem::path& path);

class TfRecords final : public Source {
 public:
  TfRecords(std::string name, FoundShards shards, const TfRecordOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return extents_[index].offset; }
  std::string describe(std::uint64_t index) const override;  // "train-00000.tfrecord[17]"

 private:
  struct Extent {
    std::uint64_t offset;  // of the payload
    std::uint64_t size;
    const std::byte* bytes;  // in a compressed file: payload and footer, in memory
  };

  struct Index;  // of one file

  // Thread-safe.
  Index index_file(std::size_t file);
  void index_plain(std::size_t file, Index& index) const;
  // Returns whether the file's sizes of records were kept.
  bool take_kept(std::size_t file, const KeptIndex& kept, Index& index) const;
  void index_packed(std::size_t file, Packing packing, Index& index);
  std::span<const std::byte> fetch(std::uint64_t index, std::vector<std::byte>& scratch) const;
  // Returns its bytes after checking the checksum. Throws DataError naming it.
  std::span<const std::byte> payload(std::uint64_t index, std::vector<std::byte>& scratch) const;
  [[noreturn]] void fail_record(std::uint64_t index, ErrorCode code, const std::string& what,
                                const std::string& hint) const;
  // Chooses the fields by the first readable record.
  void choose_fields();
  void keep_numbers();
  // Returns the length in the header of the file's next record; `left`: bytes that may follow the header. Throws
  // if it is invalid.
  std::uint64_t length_in(std::span<const std::byte> header, const Index& index, std::uint64_t offset,
                          std::uint64_t left) const;
  std::size_t file_of(std::uint64_t index) const noexcept;

  ShardFiles files_;
  TfRecordOptions options_;
  std::vector<Extent> extents_;
  std::vector<ByteSlabs> slabs_;  // of packed files
  std::atomic<std::uint64_t> in_memory_{0};
  std::vector<TfField> fields_;
  std::size_t number_bytes_ = 0;    // of a record
  std::vector<std::byte> numbers_;  // by record if all are in memory
  SourceInfo info_;
};

}  // namespace headrace
