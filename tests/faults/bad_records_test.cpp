// Records that cannot be used, under each policy: the same ones at any number of threads and replicas, and the
// others as if nothing had been.
#include <cerrno>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/system_file.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

constexpr int kImages = 60;
// Truncated within the scan, of no bytes, not an image, a flipped bit in the header, cut in the header.
const std::set<std::uint64_t> kBad{4, 17, 18, 31, 59};

std::string name_of(int image) {
  return (image < kImages / 2 ? "cat/" : "dog/") + std::to_string(100 + image) + ".jpg";
}

// A folder of JPEGs; `damaged` or whole.
void write_images(const TempFolder& folder, bool damaged) {
  for (int i = 0; i < kImages; ++i) {
    Bytes bytes = encode_jpeg(make_picture(24 + i % 5, 30, 3, static_cast<std::uint64_t>(i)));
    if (damaged && i == 4) bytes.resize(bytes.size() / 2);
    if (damaged && i == 17) bytes.clear();
    if (damaged && i == 18) bytes.assign(200, std::byte{'x'});
    if (damaged && i == 31) bytes[1] ^= std::byte{4};
    if (damaged && i == 59) bytes.resize(30);
    folder.write(name_of(i), bytes);
  }
}

Dataset pipeline(const SourcePtr& source, std::int64_t global = 8) {
  return Dataset::from(source)
      .decode()
      .shuffle({.seed = 5})
      .map(random_resized_crop({.size = 12}) | flip())
      .batch({.global_batch = global});
}

// With pairs of what is left of a batch.
Dataset mixed_pipeline(const SourcePtr& source) {
  return Dataset::from(source)
      .decode()
      .shuffle({.seed = 5})
      .map(random_resized_crop({.size = 12}) | normalize({0.5F}, {0.25F}) | one_hot(2))
      .batch({.global_batch = 8})
      .map(mixup());
}

LoaderOptions record_options(OnError on_error, int threads = 2, std::uint64_t epochs = 2) {
  return {.seed = 3, .epochs = epochs, .threads = threads, .errors = {.on_error = on_error, .max_bad_share = 1}};
}

using Samples = std::map<std::pair<std::uint64_t, std::uint64_t>, Bytes>;  // by epoch and record

// Every image handed out, and the bad records in the order of the stream.
Samples samples_of(const Dataset& dataset, const LoaderOptions& with, std::vector<BadRecord>* bad = nullptr) {
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, with);
  Samples samples;
  while (const auto batch = loader.next()) {
    batch->ready().wait();
    const TensorView& image = batch->tensor("image");
    const Bytes images = download<std::byte>(devices[0], image.data, image.bytes());
    const auto row = static_cast<std::ptrdiff_t>(image.bytes()) / image.shape[0];
    auto from = images.begin();
    for (const std::uint64_t record : batch->records()) {
      samples[{batch->position().epoch, record}] = Bytes(from, from + row);
      from += row;
    }
    if (bad != nullptr) bad->insert(bad->end(), batch->bad_records().begin(), batch->bad_records().end());
  }
  return samples;
}

class BadRecords : public testing::Test {
 protected:
  BadRecords() {
    write_images(whole_, false);
    write_images(damaged_, true);
  }

  SourcePtr whole() const { return image_folder(whole_.path(), Split::kTrain); }
  SourcePtr damaged() const { return image_folder(damaged_.path(), Split::kTrain); }

  TempFolder whole_, damaged_, out_;
};

TEST_F(BadRecords, FailNamesTheFirstOneOfTheStream) {
  DeviceGroup devices = test_devices(1);
  for (const int threads : {1, 4}) {
    Loader loader(Dataset::from(damaged()).decode().map(resize(12) | center_crop(12)).batch({.global_batch = 8}),
                  devices, record_options(OnError::kFail, threads));
    const DataError error = error_of<DataError>([&] { loader.next(); });
    EXPECT_EQ(error.location().record, 4U);
    EXPECT_THAT(error.what(), HasSubstr("cat/104.jpg"));
  }
}

TEST_F(BadRecords, SkippedOnesLeaveTheOthersAsTheyAre) {
  const Samples expected = samples_of(pipeline(whole()), record_options(OnError::kFail));
  std::vector<BadRecord> bad;
  const Samples found = samples_of(pipeline(damaged()), record_options(OnError::kSkip), &bad);
  EXPECT_EQ(bad.size(), 2 * kBad.size()) << "in each epoch";
  for (const BadRecord& one : bad) EXPECT_TRUE(kBad.contains(one.record)) << one.record;
  EXPECT_EQ(found.size(), expected.size() - 2 * kBad.size());
  for (const auto& [at, image] : found) {
    EXPECT_EQ(image, expected.at(at)) << "record " << at.second << " of epoch " << at.first;
  }
}

TEST_F(BadRecords, TheStreamIsTheSameHoweverItIsRun) {
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
    for (const bool mixed : {false, true}) {
      const Dataset dataset = mixed ? mixed_pipeline(damaged()) : pipeline(damaged());
      const auto expected = cpu_digests_of(dataset, record_options(policy, 1));
      ASSERT_EQ(expected.size(), 16U);
      for (const int replicas : {1, 2, 3, 8}) {
        for (const int threads : {1, 4}) {
          EXPECT_EQ(digests_of(dataset, replicas, record_options(policy, threads)), expected)
              << to_string(policy) << ", " << replicas << " replicas, " << threads << " threads";
        }
      }
    }
  }
}

TEST_F(BadRecords, AWrongLabelIsOne) {
  TempFolder folder;
  Bytes file(10 * 3073, std::byte{7});
  file[4 * 3073] = std::byte{200};
  folder.write("test_batch.bin", file);
  std::vector<BadRecord> bad;
  const Dataset dataset = Dataset::from(cifar_binary(folder.path(), Split::kTest)).batch({.global_batch = 5});
  EXPECT_EQ(samples_of(dataset, record_options(OnError::kSkip, 2, 1), &bad).size(), 9U);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].record, 4U);
  EXPECT_EQ(bad[0].operation, "label check");
}

TEST_F(BadRecords, AnImageOfAnotherSizeThanWasSaidIsOne) {
  const auto of = [&](const Operations& operations) {
    return Dataset::from(whole()).decode({.height = 26, .width = 30}).map(operations).batch({.global_batch = 8});
  };
  for (const Operations& operations :
       {Operations(flip()), Operations(random_resized_crop({.size = 12})), resize(20) | center_crop(12)}) {
    std::vector<BadRecord> bad;
    EXPECT_EQ(samples_of(of(operations), record_options(OnError::kSkip, 2, 1), &bad).size(), kImages / 5U);
    ASSERT_EQ(bad.size(), kImages / 5U * 4);
    for (const BadRecord& one : bad) EXPECT_NE(one.record % 5, 2U);
    EXPECT_EQ(bad[0].record, 0U);
    EXPECT_THAT(bad[0].cause, HasSubstr("an image of 24 x 30 pixels where all are said to be 26 x 30"));
  }
}

TEST_F(BadRecords, CachesChangeNothing) {
  const auto stream = [&](const std::shared_ptr<SampleCache>& cache) {
    const Dataset decoded = Dataset::from(damaged()).decode();
    return digests_of((cache ? decoded.cache(cache) : decoded)
                          .shuffle()
                          .map(random_resized_crop({.size = 12}))
                          .batch({.global_batch = 8}),
                      2, record_options(OnError::kSkip));
  };
  const auto expected = stream(nullptr);
  const std::shared_ptr<SampleCache> in_memory = memory(), on_disk = disk(out_.path());
  for (const auto& cache : {in_memory, in_memory, on_disk, on_disk}) EXPECT_EQ(stream(cache), expected);
}

TEST_F(BadRecords, SubstitutesComeFromTheEpochAndTheLedgerKnows) {
  const Samples expected = samples_of(pipeline(whole()), record_options(OnError::kFail));
  const Dataset dataset = pipeline(damaged());
  DeviceGroup devices = test_devices(3);
  Loader loader(dataset, devices, record_options(OnError::kSubstitute));
  Ledger ledger;
  std::uint64_t examples = 0;
  for (bool more = true; more;) {
    for (int r = 0; r < 3; ++r) {
      const auto batch = loader.next(r);
      more = batch.has_value();
      if (!batch) continue;
      ledger.add(*batch, r);
      examples += batch->records().size();
      for (const BadRecord& bad : batch->bad_records()) {
        ASSERT_TRUE(bad.substitute);
        EXPECT_FALSE(kBad.contains(*bad.substitute));
      }
    }
  }
  EXPECT_EQ(examples, 2 * kImages) << "no place stays empty";
  EXPECT_EQ(ledger.set_aside(), 2 * kBad.size());
  for (const std::uint64_t epoch : {0, 1})
    EXPECT_EQ(ledger.find_breach(epoch, EpochContents::all(kImages)), std::nullopt);
  EXPECT_EQ(loader.stats().bad_records, 2 * kBad.size());
  // A substitute's image is the one that record has in its own place.
  for (const auto& [at, image] : samples_of(dataset, record_options(OnError::kSubstitute))) {
    EXPECT_EQ(image, expected.at(at)) << "record " << at.second;
  }
}

TEST_F(BadRecords, TheQuarantineFileIsTheSameHoweverItIsRun) {
  std::vector<Bytes> files;
  for (const int replicas : {1, 3}) {
    for (const int threads : {1, 4}) {
      const auto path = out_ / ("bad" + std::to_string(files.size()));
      LoaderOptions with = record_options(OnError::kSkip, threads, 3);
      with.errors.quarantine = path;
      digests_of(pipeline(damaged()), replicas, with);
      files.push_back(read_whole_file(path));
    }
  }
  for (const Bytes& file : files) EXPECT_EQ(file, files.front());

  std::set<std::uint64_t> records;
  std::ifstream lines(out_ / "bad0");
  for (std::string text; std::getline(lines, text);) {
    const nlohmann::json line = nlohmann::json::parse(text);
    const auto record = line.at("record").get<std::uint64_t>();
    EXPECT_TRUE(records.insert(record).second) << record << " is listed twice";
    EXPECT_EQ(line.at("name"), name_of(static_cast<int>(record)));
    EXPECT_EQ(line.at("source"), damaged_.path().string());
    EXPECT_EQ(line.at("action"), "skip");
    EXPECT_THAT(line.at("operation").get<std::string>(), HasSubstr("decode"));
    EXPECT_FALSE(line.at("cause").get<std::string>().empty());
    EXPECT_TRUE(line.contains("epoch") && line.contains("step") && line.contains("code"));
  }
  EXPECT_EQ(records, kBad);
}

TEST_F(BadRecords, AQuarantineFileThatCannotBeWrittenIsRefusedAtOnce) {
  DeviceGroup devices = test_devices(1);
  LoaderOptions with = record_options(OnError::kSkip);
  with.errors.quarantine = out_ / "no" / "file";
  EXPECT_THROW(Loader(pipeline(damaged()), devices, with), DataError);
}

TEST_F(BadRecords, ABatchOfNothingElseIsNotHandedOut) {
  const auto source = std::make_shared<FakeSource>(30, [](std::uint64_t index) {
    if (index / 10 == 1) throw DataError(ErrorCode::kDataCorrupt, "rotten", {.source = "fake", .record = index});
  });
  DeviceGroup devices = test_devices(2);
  Loader loader(Dataset::from(source).batch({.global_batch = 10}), devices, record_options(OnError::kSkip, 2, 1));
  for (const std::int64_t examples : {5, 5}) {
    for (int r = 0; r < 2; ++r) {
      const auto batch = loader.next(r);
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->examples(), examples);
      EXPECT_EQ(batch->position().global_examples, 2 * examples);
    }
  }
  EXPECT_FALSE(loader.next(0));
}

TEST_F(BadRecords, WhereNoneIsGoodSubstitutionGivesUp) {
  const auto source = std::make_shared<FakeSource>(30, [](std::uint64_t index) {
    throw DataError(ErrorCode::kDataCorrupt, "rotten", {.source = "fake", .record = index});
  });
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(source).batch({.global_batch = 10}), devices, record_options(OnError::kSubstitute));
  EXPECT_THAT(error_of<DataError>([&] { loader.next(); }).what(), HasSubstr("16 other records"));
}

TEST_F(BadRecords, RunningOutOfMemoryIsNobodysRecord) {
  UserMap map{.name = "greedy", .field = "value", .output = {.dtype = DType::kI64, .shape = {}}};
  map.function = [](std::span<const std::byte>, const Shape&, std::span<std::byte>, Philox&) {
    throw std::bad_alloc();
  };
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(numbers(8)).map(user_map(std::move(map))).batch({.global_batch = 4}), devices,
                record_options(OnError::kSkip));
  EXPECT_EQ(error_of([&] { loader.next(); }).code(), ErrorCode::kOutOfMemory);
}

// Reads of some files fail a number of times.
class Refusals final : public FileFaults {
 public:
  Refusals(std::string name, int error, int times) : name_(std::move(name)), error_(error), left_(times) {
    before_ = set_file_faults(this);
  }
  ~Refusals() override { set_file_faults(before_); }
  Refusals(const Refusals&) = delete;
  Refusals& operator=(const Refusals&) = delete;

  int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t, std::size_t&) override {
    if (operation != FileOperation::kRead || path.filename() != name_) return 0;
    return left_.fetch_sub(1) > 0 ? error_ : 0;
  }

 private:
  std::string name_;
  int error_;
  std::atomic<int> left_;
  FileFaults* before_;
};

TEST_F(BadRecords, WhatTheSystemRefusesForAMomentIsTriedAgain) {
  const auto expected = cpu_digests_of(pipeline(whole()), record_options(OnError::kFail));
  const SourcePtr source = whole();
  const Refusals refusals("123.jpg", EIO, 2);
  DeviceGroup devices = test_devices(1);
  Loader loader(pipeline(source), devices, record_options(OnError::kFail));
  EXPECT_EQ(digests_of(loader, devices), expected);
  EXPECT_EQ(loader.stats().read_retries, 2U);
}

TEST_F(BadRecords, WhatTheSystemGoesOnRefusingIsBad) {
  const SourcePtr source = whole();
  const Refusals refusals("123.jpg", EIO, 1000);
  std::vector<BadRecord> bad;
  samples_of(pipeline(source), record_options(OnError::kSkip, 2, 1), &bad);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].record, 23U);
  EXPECT_EQ(bad[0].code, ErrorCode::kIo);
  EXPECT_EQ(bad[0].operation, "source read");
}

TEST_F(BadRecords, FilesThatVanishOrChangeInTheMiddleAreBad) {
  const SourcePtr source = whole();
  std::filesystem::remove(whole_ / name_of(7));
  std::filesystem::resize_file(whole_ / name_of(8), 100);
  whole_.write(name_of(9), Bytes(5000, std::byte{1}));
  std::vector<BadRecord> bad;
  samples_of(Dataset::from(source).decode().map(resize(12) | center_crop(12)).batch({.global_batch = 8}),
             record_options(OnError::kSkip, 2, 1), &bad);
  ASSERT_EQ(bad.size(), 3U);
  EXPECT_EQ(bad[0].code, ErrorCode::kNotFound);
  EXPECT_THAT(bad[1].cause, HasSubstr("bytes"));
  EXPECT_THAT(bad[2].cause, HasSubstr("bytes"));
}

TEST_F(BadRecords, AResumedStreamSkipsTheSame) {
  const Dataset dataset = pipeline(damaged());
  const auto whole_stream = digests_of(dataset, 1, record_options(OnError::kSkip));
  DeviceGroup devices = test_devices(1);
  LoaderState state = Loader(dataset, devices, record_options(OnError::kSkip)).state();
  for (std::size_t step = 0; step < whole_stream.size(); step += 3) {
    state.sequence = step;
    LoaderOptions with = record_options(OnError::kSkip, 3);
    with.start = state;
    EXPECT_EQ(digests_of(dataset, 2, with),
              std::vector(whole_stream.begin() + static_cast<std::ptrdiff_t>(step), whole_stream.end()));
  }
}

}  // namespace
}  // namespace headrace::test
