// A consumer killed at any moment and resumed with other replicas: every record once, every batch as it would have
// been.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/tests/faults/killed_program.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

constexpr std::uint64_t kKilledRecords = 300, kKilledEpochs = 3;
#ifdef HEADRACE_SANITIZED  // where a process takes long to begin
constexpr int kKills = 40;
#else
constexpr int kKills = 200;
#endif

Dataset dataset() {
  return Dataset::from(test::noise_images(kKilledRecords, 8, 8))
      .shuffle()
      .map(pad_crop(8, 2) | flip())
      .batch({.global_batch = 16});
}

// What a consumer wrote down of one batch, in one line.
struct Line {
  LoaderState next;  // to go on after it
  std::uint64_t epoch = 0, step = 0;
  std::string sha256;
  std::vector<std::uint64_t> records;
};

// A killed writer may leave a part of a line.
void drop_torn_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty() || text.ends_with('\n')) return;
  write_file_atomically(path, std::string_view(text).substr(0, text.rfind('\n') + 1));
}

std::vector<Line> read_lines(const std::filesystem::path& path) {
  std::vector<Line> lines;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.next.fingerprint >> line.next.sequence >> line.epoch >> line.step >> line.sha256;
    for (std::uint64_t record = 0; words >> record;) line.records.push_back(record);
    lines.push_back(std::move(line));
  }
  return lines;
}

void consume(const std::filesystem::path& path, int replicas, int threads, std::optional<LoaderState> start) {
  DeviceGroup devices = test::test_devices(replicas);
  Loader loader(dataset(), devices, {.seed = 5, .epochs = kKilledEpochs, .threads = threads, .start = start});
  StreamDigest digest(devices);
  while (true) {
    std::vector<Batch> shares;
    for (int r = 0; r < replicas; ++r) {
      std::optional<Batch> batch = loader.next(r);
      if (!batch) return;
      shares.push_back(std::move(*batch));
    }
    const BatchDigest of = digest.add(shares);
    const LoaderState state = loader.state();
    std::ostringstream line;
    line << state.fingerprint << ' ' << state.sequence << ' ' << of.epoch << ' ' << of.step << ' ' << of.sha256;
    for (const Batch& share : shares) {
      for (const std::uint64_t record : share.records()) line << ' ' << record;
    }
    append_to_file(path, line.str() + "\n");
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

TEST(KilledConsumer, DISABLED_Consumes) {
  const auto part = test::KilledPart::of_this_process();
  if (!part) GTEST_SKIP() << "run by the other test of this suite";
  const std::vector<Line> lines = read_lines(part->path);
  const std::optional<LoaderState> start = lines.empty() ? std::nullopt : std::optional(lines.back().next);
  part->begin();
  consume(part->path, 1 << part->attempt % 4, 1 + part->attempt % 3, start);
}

TEST(KilledConsumer, ResumesToTheSameStreamEachRecordOnce) {
  const auto expected = test::cpu_digests_of(dataset(), {.seed = 5, .epochs = kKilledEpochs, .threads = 1});
  const test::TempFolder folder;
  Philox random({.seed = 2});
  int kills = 0;
  for (int run = 0; kills < kKills; ++run) {
    const auto path = folder / std::to_string(run);
    const auto written = [&] { return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0; };
    for (int attempt = 0;
         !test::run_and_kill("KilledConsumer.DISABLED_Consumes", {path, run + attempt}, written, random);
         ++attempt) {
      ASSERT_FALSE(HasFailure());
      drop_torn_line(path);
      ++kills;
    }
    const std::vector<Line> lines = read_lines(path);
    ASSERT_EQ(lines.size(), expected.size());
    Ledger ledger;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(lines[i].sha256, expected[i].sha256) << "batch " << i << " of run " << run;
      for (const std::uint64_t record : lines[i].records) {
        ledger.add(LedgerEntry{.epoch = lines[i].epoch, .step = lines[i].step, .record = record});
      }
    }
    for (std::uint64_t epoch = 0; epoch < kKilledEpochs; ++epoch) {
      ASSERT_EQ(ledger.find_breach(epoch, EpochContents::all(kKilledRecords)), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace headrace
