#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

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
