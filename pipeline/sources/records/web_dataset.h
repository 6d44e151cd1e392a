// Archives in WebDataset's naming: plain tars and zips are read by position, compressed tars lie unpacked in
// memory.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/stored_file.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {

// Returns whether it is a shard, by its name: x.tar, x.tar.gz, x.tar-00000-of-00004; by content for
// x-00000-of-00004. A .zip may be something else: it counts as a shard only if requested as one.
bool is_web_shard(const std::filesystem::path& path);

class WebDataset final : public Source {
 public:
  WebDataset(std::string name, FoundShards shards, const WebDatasetOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return images_[index].place.offset; }
  std::string describe(std::uint64_t index) const override;  // "shard-0.tar/0007.jpg"

 private:
  struct Image {
    StoredFile place;
    const std::byte* bytes;  // its position in memory; else null
  };
  class Further;   // the members of a record that are taken along
  struct Archive;  // what was found in one

  [[noreturn]] void fail_without_samples() const;
  // Thread-safe.
  bool has_room(std::uint64_t bytes, std::uint64_t limit);
  Archive read_archive(std::size_t file, std::uint64_t memory_limit);
  void add_archive(Archive archive);
  void add_sample(WebSample sample);
  // Decides whether records have labels, and numbers their classes.
  void settle_labels();
  void learn_fields();
  void describe_columns();
  void take_fingerprint();
  DataError cannot_read(std::uint64_t index, const DataError& error) const;
  std::span<const std::byte> label_of(std::uint64_t index) const noexcept;
  std::vector<ByteExtent> extents_of(std::uint64_t record, bool with_image) const;
  void announce(std::span<const std::uint64_t> records, bool with_images) const;
  std::size_t file_of(std::uint64_t index) const noexcept;

  ShardFiles files_;
  MemberFields fields_;
  WebMembers roles_;
  std::vector<ByteSlabs> slabs_;  // of packed archives
  std::atomic<std::uint64_t> in_memory_{0};
  SampleTable table_;
  std::vector<Image> images_;
  std::vector<Image> members_;                       // by record, as MemberFields::extensions()
  std::map<std::uint64_t, std::string> faults_;      // of unusable samples, by record
  std::map<std::uint64_t, std::string> unlabelled_;  // samples without a label, and why; empty: it is missing
  std::vector<float> numbers_;                       // labels of LabelType::kNumber, by record
  std::vector<std::string> class_names_;             // of LabelType::kClass, by record
  std::vector<std::string> seen_;                    // the members' extensions
  bool has_labels_ = true;
  SourceInfo info_;
};

}  // namespace headrace
