// Images inside a compressed tar archive: unpacked into memory when opened.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/byte_slabs.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/images/image_table.h"
#include "headrace/pipeline/sources/images/sidecars.h"
#include "headrace/pipeline/sources/members/member_fields.h"

namespace headrace {

class InMemoryArchive final : public Source {
 public:
  InMemoryArchive(const std::filesystem::path& archive, ArchiveFiles& files, const ArchiveOptions& options,
                  bool recognised);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return table_.label_value(index);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return offsets_[index]; }
  std::string describe(std::uint64_t index) const override;

 private:
  struct Unpacked;
  static Unpacked unpack(const std::string& archive, ArchiveFiles& files, const ArchiveOptions& options,
                         bool recognised);
  InMemoryArchive(const std::filesystem::path& archive, Unpacked unpacked);

  class Beside;  // the files beside an image
  void take_along(const Sidecars& sidecars, Fingerprint& fingerprint);

  std::vector<ByteSlabs> slabs_;
  std::vector<std::span<const std::byte>> images_;  // into slabs_
  std::vector<std::uint64_t> offsets_;              // in the unpacked archive
  ImageTable table_;
  MemberFields fields_;
  std::vector<std::span<const std::byte>> beside_;  // by record, as MemberFields::extensions(); null: missing
  SourceInfo info_;
};

}  // namespace headrace
