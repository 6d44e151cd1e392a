// Columns of tables, in pages that processes share.
#include "headrace/pipeline/sources/table_column.h"

#include "headrace/devices/base/file.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

class TableColumns : public ::testing::Test {
 protected:
  TableColumns() {
    ::setenv("HEADRACE_INDEX_FOLDER", folder_.path().c_str(), 1);
    for (std::uint64_t i = 0; i < 1'000'000; ++i) numbers_.push_back(i * i);
  }
  ~TableColumns() override { ::unsetenv("HEADRACE_INDEX_FOLDER"); }

  std::vector<std::filesystem::path> tables() const {
    std::vector<std::filesystem::path> paths;
    for (const DirectoryEntry& entry : list_directory(folder_.path())) paths.push_back(entry.path);
    return paths;
  }
  static bool is_in_file(const void* at) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long long begin = 0, end = 0;
      if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2) continue;
      const auto address = reinterpret_cast<std::uintptr_t>(at);
      if (address >= begin && address < end) return line.ends_with(".table");
    }
    return false;
  }
  void expect_shared(bool shared) const {
    TableColumn<std::uint64_t> column(numbers_);
    column.share();
    EXPECT_EQ(is_in_file(column.data()), shared);
    EXPECT_TRUE(std::ranges::equal(column, numbers_));
    EXPECT_EQ(column.size(), numbers_.size());
    EXPECT_EQ(column.back(), numbers_.back());
  }

  TempFolder folder_;
  std::vector<std::uint64_t> numbers_;
};

TEST_F(TableColumns, AreTheSameInAFile) {
  expect_shared(true);
  expect_shared(true);
  EXPECT_EQ(tables().size(), 1U) << "one file for all who hold the same";
  ++numbers_[5];
  expect_shared(true);
  EXPECT_EQ(tables().size(), 2U);
}

TEST_F(TableColumns, AreNeverThoseOfAnotherFile) {
  expect_shared(true);
  const std::filesystem::path table = tables().front();
  {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3'000'000);
    file.put('x');
  }
  expect_shared(true);  // it was replaced
  std::filesystem::resize_file(table, 100);
  expect_shared(true);
  EXPECT_EQ(std::filesystem::file_size(table), 8 * numbers_.size());
}

TEST_F(TableColumns, StayInMemoryWhereThereIsNoFile) {
  ::setenv("HEADRACE_INDEX_FOLDER", "off", 1);
  expect_shared(false);
  ::setenv("HEADRACE_INDEX_FOLDER", (folder_.write("file", Bytes(3)) / "below").c_str(), 1);
  expect_shared(false);
  ::setenv("HEADRACE_INDEX_FOLDER", folder_.path().c_str(), 1);
  numbers_.resize(1000);
  expect_shared(false);
  EXPECT_EQ(tables().size(), 1U);
}

TEST_F(TableColumns, GoAfterAMonth) {
  expect_shared(true);
  std::filesystem::last_write_time(tables().front(),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 40));
  expect_shared(true);
  EXPECT_EQ(tables().size(), 1U);
  ++numbers_[0];
  expect_shared(true);
  EXPECT_EQ(tables().size(), 2U) << "it was asked for just now";
  for (const auto& table : tables()) {
    std::filesystem::last_write_time(table,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 40));
  }
  ++numbers_[0];
  expect_shared(true);
  EXPECT_EQ(tables().size(), 1U);
}

}  // namespace
}  // namespace headrace::test
