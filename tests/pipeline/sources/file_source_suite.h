// What every source that reads files promises when they are missing, unreadable, or change under it.
#pragma once

#include <unistd.h>

#include "headrace/tests/pipeline/sources/source_suite.h"

namespace headrace::test {

// Maker, besides what SourceSuite asks: `SourcePtr open_at(path) const`, `path root() const`, `files() const`.
template <typename Maker>
class FileSourceSuite : public ::testing::Test {
 protected:
  // Each record is what it was before or a DataError that names it; returns how many are errors.
  static std::size_t check_never_wrong(const Source& source, const std::vector<std::vector<Bytes>>& before) {
    std::size_t errors = 0;
    std::vector<std::byte> scratch;
    for (std::uint64_t i = 0; i < before.size(); ++i) {
      try {
        EXPECT_EQ(read_record(source, i, scratch), before[i]) << source.describe(i);
      } catch (const DataError& error) {
        EXPECT_EQ(error.location().record, i);
        EXPECT_FALSE(error.location().source.empty());
        ++errors;
      }
    }
    return errors;
  }

  Maker maker_;
};
TYPED_TEST_SUITE_P(FileSourceSuite);

TYPED_TEST_P(FileSourceSuite, NamesAPathThatIsMissing) {
  const std::filesystem::path missing = this->maker_.root().string() + ".gone";
  const DataError error = error_of<DataError>([&] { this->maker_.open_at(missing); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(error.what()).find(missing.string()), std::string::npos) << error.what();
}

TYPED_TEST_P(FileSourceSuite, SaysWhichFileCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::filesystem::path file = this->maker_.files().front();
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const DataError error = error_of<DataError>([&] {
    const SourcePtr source = this->maker_.open();
    std::vector<std::byte> scratch;
    source->read(0, scratch);
  });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_NE(std::string(error.what()).find(file.filename().string()), std::string::npos) << error.what();
}

TYPED_TEST_P(FileSourceSuite, NeverGivesWrongBytesFromFilesCutShortUnderIt) {
  const SourcePtr source = this->maker_.open();
  const auto before = read_all(*source);
  for (const auto& file : this->maker_.files())
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 3);
  const std::size_t errors = this->check_never_wrong(*source, before);
  EXPECT_EQ(errors > 0, !TypeParam::kResident);
}

TYPED_TEST_P(FileSourceSuite, NeverGivesWrongBytesFromFilesRemovedUnderIt) {
  const SourcePtr source = this->maker_.open();
  const auto before = read_all(*source);
  for (const auto& file : this->maker_.files()) std::filesystem::remove(file);
  this->check_never_wrong(*source, before);
}

REGISTER_TYPED_TEST_SUITE_P(FileSourceSuite, NamesAPathThatIsMissing, SaysWhichFileCannotBeRead,
                            NeverGivesWrongBytesFromFilesCutShortUnderIt,
                            NeverGivesWrongBytesFromFilesRemovedUnderIt);

}  // namespace headrace::test
