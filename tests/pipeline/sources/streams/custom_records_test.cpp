// Records that come once: from a function, from a pipe.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

GeneratorOptions squares() {
  return {.name = "squares",
          .fields = {{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}},
          .records = 20,
          .fingerprint = 1,
          .function = [](std::uint64_t index, RecordWriter& record) {
            std::ranges::fill(record.allocate(0, index % 3 + 1), static_cast<std::byte>(index));
            record.put(1, static_cast<std::int64_t>(index * index));
          }};
}

struct GeneratorMaker {
  static constexpr std::uint64_t kRecords = 20;
  static constexpr bool kResident = false;

  SourcePtr open() const { return generator(options_); }
  void change() { options_.fingerprint = 2; }

 private:
  GeneratorOptions options_ = squares();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Generator, SourceSuite, GeneratorMaker);

// What reading record 0 says.
std::string error_of_function(std::function<void(std::uint64_t, RecordWriter&)> function) {
  GeneratorOptions options = squares();
  options.function = std::move(function);
  std::vector<std::byte> scratch;
  try {
    generator(options)->read(0, scratch);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().record, 0U);
    EXPECT_EQ(error.location().source, "squares");
    return error.what();
  }
  return {};
}

TEST(GeneratorTest, IsOneStream) {
  GeneratorOptions options{.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}}, .records = 43};
  options.function = [](std::uint64_t index, RecordWriter& record) {
    record.put(0, static_cast<std::int64_t>(index * 3));
  };
  expect_one_stream(Dataset::from(generator(options)).shuffle().batch({.global_batch = 5}));
  expect_contents(Dataset::from(generator(options)).shuffle().batch({.global_batch = 5}), EpochContents::all(43),
                  3);
}

TEST(GeneratorTest, ReportsWhatItsFunctionDoesWrong) {
  EXPECT_THAT(error_of_function([](auto, RecordWriter&) { throw std::runtime_error("out of ideas"); }),
              HasSubstr("out of ideas"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) { record.put(1, std::int64_t{1}); }),
              HasSubstr("'image' was not written"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) { record.put(1, std::int32_t{1}); }),
              HasSubstr("was given 4 bytes"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) { record.allocate(2, 1); }),
              HasSubstr("field number 2"));
  EXPECT_THAT(error_of_function([](auto, RecordWriter& record) {
                record.allocate(0, 1);
                record.allocate(0, 1);
              }),
              HasSubstr("written twice"));
}

TEST(GeneratorTest, RunningOutOfMemoryIsNotTheRecordsFault) {
  GeneratorOptions options = squares();
  options.function = [](auto, RecordWriter&) { throw std::bad_alloc(); };
  std::vector<std::byte> scratch;
  EXPECT_EQ(error_of<DataError>([&] { generator(options)->read(0, scratch); }).code(), ErrorCode::kOutOfMemory);
}

TEST(GeneratorTest, RefusesWrongOptions) {
  GeneratorOptions none = squares();
  none.function = {};
  EXPECT_THROW(generator(none), ConfigError);
  none = squares();
  none.fields.clear();
  EXPECT_THROW(generator(none), ConfigError);
  none = squares();
  none.records = std::uint64_t{1} << 48;
  EXPECT_THROW(generator(none), ConfigError);
}

// Squares until there were `count`.
PullOptions pulled_squares(std::int64_t count, std::int64_t of_first = 0) {
  return {.name = "squares",
          .fields = {{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}},
          .function = [next = std::int64_t{0}, count, of_first](RecordWriter& record) mutable {
            if (next == count) return false;
            std::ranges::fill(record.allocate(0, static_cast<std::size_t>(next % 3 + 1)),
                              static_cast<std::byte>(next));
            record.put(1, next * next + of_first);
            ++next;
            return true;
          }};
}

struct PulledMaker {
  static constexpr std::uint64_t kRecords = 20;
  static constexpr bool kResident = true;

  SourcePtr open() const { return pulled(pulled_squares(20, of_first_)); }
  void change() { of_first_ = 1; }

 private:
  std::int64_t of_first_ = 0;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Pulled, SourceSuite, PulledMaker);

DataError error_of_pulling(PullOptions options) {
  try {
    pulled(std::move(options));
  } catch (const DataError& error) {
    return error;
  }
  return DataError(ErrorCode::kInternal, "nothing was said", {});
}

TEST(PulledTest, IsOneStream) {
  const SourcePtr source = pulled({.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}},
                                   .function = [next = std::int64_t{0}](RecordWriter& record) mutable {
                                     record.put(0, next);
                                     return ++next < 44;
                                   }});
  EXPECT_EQ(source->info().records, 43U) << "what is written before false is dropped";
  expect_one_stream(Dataset::from(source).shuffle().batch({.global_batch = 5}));
  expect_contents(Dataset::from(source).shuffle().batch({.global_batch = 5}), EpochContents::all(43), 3);
}

TEST(PulledTest, SaysAtWhichRecordItsFunctionFailed) {
  PullOptions options = pulled_squares(9);
  options.function = [inner = options.function, calls = 0](RecordWriter& record) mutable {
    if (++calls == 4) throw std::runtime_error("the line went dead");
    return inner(record);
  };
  const DataError error = error_of_pulling(std::move(options));
  EXPECT_EQ(error.location().record, 3U);
  EXPECT_THAT(error.what(), HasSubstr("the line went dead"));

  options = pulled_squares(9);
  options.function = [](RecordWriter& record) {
    record.put(1, std::int64_t{1});
    return true;
  };
  EXPECT_THAT(error_of_pulling(std::move(options)).what(), HasSubstr("'image' was not written"));
}

TEST(PulledTest, EndsWhereItsMemoryDoes) {
  PullOptions options = pulled_squares(-1);  // without end
  options.memory_limit = 10'000;
  const DataError error = error_of_pulling(std::move(options));
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.what(), HasSubstr("10000 bytes"));
  EXPECT_THAT(error.hint(), HasSubstr("memory_limit"));
}

TEST(PulledTest, RefusesNothingAtAll) {
  EXPECT_THAT(error_of_pulling(pulled_squares(0)).what(), HasSubstr("gave no record"));
  PullOptions none = pulled_squares(3);
  none.function = {};
  EXPECT_THROW(pulled(none), ConfigError);
  none = pulled_squares(3);
  none.fields.clear();
  EXPECT_THROW(pulled(none), ConfigError);
}

constexpr std::size_t kPiped = 43;

TarBuilder piped_samples() {
  TarBuilder tar;
  for (std::size_t i = 0; i < kPiped; ++i) {
    const std::string key = "set/" + std::to_string(1000 + i);
    const std::string label = std::to_string(i * 3);
    tar.add(key + ".txt", to_bytes("a caption"));
    tar.add(key + ".jpg", encode_jpeg(make_picture(8, 9, 3, i)));
    if (i % 2 == 0) tar.add(key + ".cls", to_bytes(label));
    if (i % 2 == 1) tar.add(key + ".json", to_bytes("{\"label\": " + label + "}"));
  }
  return tar;
}

// A named pipe that `bytes` are written to, some at a time, as soon as it is read.
class Piped {
 public:
  explicit Piped(Bytes bytes) : bytes_(std::move(bytes)) {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    std::signal(SIGPIPE, SIG_IGN);  // a reader may leave before the end
    writer_ = std::thread([this] {
      std::ofstream pipe(path(), std::ios::binary);
      constexpr std::size_t kPiece = 700;
      for (std::size_t at = 0; at < bytes_.size() && pipe; at += kPiece) {
        pipe.write(reinterpret_cast<const char*>(bytes_.data() + at),
                   static_cast<std::streamsize>(std::min(kPiece, bytes_.size() - at)));
        pipe.flush();
      }
      written_ = true;
    });
  }
  ~Piped() {
    const int rest = ::open(path().c_str(), O_RDONLY | O_NONBLOCK);  // a writer may still wait for a reader
    std::array<char, 4096> bytes{};
    while (!written_) [[maybe_unused]] const ssize_t count = ::read(rest, bytes.data(), bytes.size());
    ::close(rest);
    writer_.join();
  }
  Piped(const Piped&) = delete;
  Piped& operator=(const Piped&) = delete;

  std::filesystem::path path() const { return folder_ / "pipe"; }

 private:
  TempFolder folder_;
  Bytes bytes_;
  std::atomic<bool> written_{false};
  std::thread writer_;
};

Dataset plan_over(SourcePtr source) {
  return Dataset::from(std::move(source))
      .decode()
      .map(pad_crop(8, 1))
      .shuffle_window({.size = 10})
      .batch({.global_batch = 6});
}

TEST(WebStream, HasTheSamplesOfTheArchive) {
  const Bytes archive = piped_samples().finish();
  const TempFolder folder;
  folder.write("shard.tar", archive);
  const auto expected = cpu_digests_of(plan_over(web_dataset(folder / "shard.tar")), {});
  const Piped pipe(archive);
  EXPECT_EQ(digests_of(plan_over(open_source(pipe.path(), Split::kTrain)), 2, {}), expected);
}

TEST(WebStream, GoesOnWhereTheWriterBeginsAgain) {
  const Bytes archive = piped_samples().finish();
  LoaderState state;
  std::vector<BatchDigest> expected;
  {
    const Piped pipe(archive);
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(plan_over(web_stream(pipe.path())), devices);
    for (int i = 0; i < 3; ++i) loader.next();
    state = loader.state();
    expected = digests_of(loader, devices);
  }
  const Piped pipe(archive);
  EXPECT_EQ(digests_of(plan_over(web_stream(pipe.path())), 1, {.start = state}), expected);
}

std::string fault_in(const SourcePtr& source, const LoaderOptions& options = {}) {
  try {
    digests_of(plan_over(source), 1, options);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "none";
}

TEST(WebStream, ThatIsCutShortFails) {
  Bytes archive = piped_samples().finish();
  archive.resize(archive.size() / 2);
  const Piped pipe(archive);
  EXPECT_THAT(fault_in(web_stream(pipe.path())), HasSubstr("cut short"));
}

TEST(WebStream, ThatIsPackedSaysHowToUnpackIt) {
  const Piped pipe(pack(piped_samples().finish(), Packing::kZstd));
  EXPECT_THAT(fault_in(web_stream(pipe.path())), HasSubstr("zstd -dc"));
}

TEST(WebStream, WithoutASampleFails) {
  const Piped empty(TarBuilder().finish());
  EXPECT_THAT(fault_in(web_stream(empty.path())), HasSubstr("ends without a sample"));
  const Piped others(TarBuilder().add("notes.txt", to_bytes("no image")).finish());
  EXPECT_THAT(fault_in(web_stream(others.path())), HasSubstr("ends without a sample"));
}

TEST(WebStream, ComesOnce) {
  const Piped pipe(piped_samples().finish());
  const SourcePtr source = web_stream(pipe.path());
  EXPECT_EQ(fault_in(source), "none");
  EXPECT_THAT(fault_in(source), HasSubstr("already been read"));
}

TEST(WebStream, SkipsSamplesThatCannotBeUsed) {
  TarBuilder tar;
  const Bytes image = encode_jpeg(make_picture(8, 9, 3, 1));
  tar.add("a.jpg", image).add("a.cls", to_bytes("1"));
  tar.add("without-label.jpg", image);
  tar.add("b.cls", to_bytes("2")).add("b.jpg", image);
  tar.add("without-image.cls", to_bytes("3"));
  tar.add("large.cls", to_bytes("3")).add("large.jpg", Bytes(5000));
  tar.add("c.jpg", image).add("c.cls", to_bytes("4"));
  const Piped pipe(tar.finish());
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(web_stream(pipe.path(), {.max_image_bytes = 4999}))
                    .decode()
                    .map(pad_crop(8, 1))
                    .batch({.global_batch = 6}),
                devices, {.errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->examples(), 3);
  std::vector<std::string> causes;
  for (const BadRecord& bad : batch->bad_records()) causes.push_back(bad.cause);
  EXPECT_THAT(causes, ElementsAre(HasSubstr("without-label"), HasSubstr("no image"), HasSubstr("5000 bytes")));
}

}  // namespace
}  // namespace headrace::test
