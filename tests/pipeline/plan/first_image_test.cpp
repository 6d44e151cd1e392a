// decode() without a size before batch(): the size of the source's first image counts.
#include "headrace/pipeline/plan/first_image.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/oriented.h"

namespace headrace::test {
namespace {

constexpr int kAlike = 12;

// A folder of images of 9 x 11 pixels in two classes.
class FirstImage : public testing::Test {
 protected:
  FirstImage() {
    for (int i = 0; i < kAlike; ++i) write(i, encode_jpeg(make_picture(9, 11, 3, static_cast<std::uint64_t>(i))));
  }

  static std::string name(int i) { return (i < 6 ? "a/" : "b/") + std::to_string(100 + i) + ".jpg"; }
  void write(int i, const Bytes& bytes) const { folder_.write(name(i), bytes); }
  Dataset images() const { return Dataset::from(image_folder(folder_.path(), Split::kTrain)); }

  TempFolder folder_;
};

TEST_F(FirstImage, GivesTheSizeThatThePlanNeeds) {
  const DecodeOptions said{.height = 9, .width = 11};
  const Operations floats = normalize({0.5F}, {0.25F});
  const auto same = [&](const std::function<Dataset(const Dataset&)>& rest) {
    const Dataset found = rest(images().decode()), given = rest(images().decode(said));
    EXPECT_EQ(found.fingerprint(), given.fingerprint());
    EXPECT_EQ(found.fields(), given.fields());
    for (const int replicas : {1, 2}) {
      const LoaderOptions options{.seed = 3, .epochs = 2, .threads = replicas};
      EXPECT_EQ(digests_of(found, replicas, options), digests_of(given, replicas, options));
    }
    EXPECT_EQ(Dataset::from_json(found.to_json()).fingerprint(), given.fingerprint());
  };
  same([](const Dataset& data) { return data.batch({.global_batch = 5}); });
  same([&](const Dataset& data) {
    return data.shuffle().map(flip() | floats).batch({.global_batch = 4}).prefetch(1);
  });
  same([&](const Dataset& data) { return data.map(floats | flatten()).batch({.global_batch = 4}); });
  same([](const Dataset& data) {
    return data.cache(memory()).skip(3).shard(2, 1).repeat(2).batch({.global_batch = 2});
  });
}

TEST_F(FirstImage, IsNamedByExplain) {
  EXPECT_THAT(images().decode().batch({.global_batch = 4}).explain(),
              HasSubstr("decode(9 x 11)  [the size of the first image, a/100.jpg]\n"));
  EXPECT_THAT(images().decode({.height = 9, .width = 11}).batch({.global_batch = 4}).explain(),
              AllOf(HasSubstr("decode(9 x 11)\n"), Not(HasSubstr("first image"))));
}

TEST_F(FirstImage, MakesAnotherSizeABadRecord) {
  write(7, encode_jpeg(make_picture(10, 11, 3, 7)));
  const auto run = [&](const Dataset& data, OnError on_error, std::uint64_t seed, int threads) {
    return cpu_digests_of(
        data.batch({.global_batch = 12, .drop_remainder = false}),
        {.seed = seed, .threads = threads, .errors = {.on_error = on_error, .max_bad_share = 0.5}});
  };
  for (const int threads : {1, 3}) {
    const Dataset shuffled = images().decode().shuffle();
    EXPECT_THAT(message_of<Error>([&] { run(shuffled, OnError::kFail, 5, threads); }),
                AllOf(HasSubstr("b/107.jpg"), HasSubstr("record 7"),
                      HasSubstr("an image of 10 x 11 pixels where the first image, a/100.jpg, has 9 x 11"),
                      HasSubstr("resize() or random_resized_crop()"), HasSubstr("decode(height=, width=)")));
    EXPECT_THAT(message_of<Error>([&] { run(images().decode().map(resize(8)), OnError::kFail, 5, threads); }),
                HasSubstr("an image of 10 x 11 pixels where the first image, a/100.jpg, has 9 x 11"));
    const DecodeOptions said{.height = 9, .width = 11};
    for (const std::uint64_t seed : {1U, 2U}) {
      for (const OnError on_error : {OnError::kSkip, OnError::kSubstitute})
        EXPECT_EQ(run(shuffled, on_error, seed, threads), run(images().decode(said).shuffle(), on_error, seed, 1));
    }
  }
}

// Whatever the plan leaves of the source, and wherever the loader begins.
TEST_F(FirstImage, IsTheFirstOfTheSource) {
  write(0, encode_jpeg(make_picture(5, 6, 3, 0)));
  const Dataset all = images().decode();
  for (const Dataset& data :
       {all.skip(4), all.shard(2, 1), all.filter(with_labels({1})), all.shuffle({.seed = 9})}) {
    EXPECT_THAT(data.batch({.global_batch = 2}).explain(), HasSubstr("[the size of the first image, a/100.jpg]"));
    EXPECT_EQ(data.batch({.global_batch = 2}).fields()[0].shape, (Shape{5, 6, 3}));
  }
  const TempFolder other;
  other.write("a/1.jpg", encode_jpeg(make_picture(7, 8, 3, 0)));
  other.write("b/1.jpg", encode_jpeg(make_picture(9, 11, 3, 0)));
  const Dataset small = Dataset::from(image_folder(other.path(), Split::kTrain));
  EXPECT_EQ(concatenate({small, images()}).decode().batch({.global_batch = 2}).fields()[0].shape,
            (Shape{7, 8, 3}));
}

TEST_F(FirstImage, PassesOverBadRecords) {
  write(0, to_bytes("no image"));
  write(1, {});
  EXPECT_THAT(images().decode().batch({.global_batch = 4}).explain(), HasSubstr("the first image, a/102.jpg]"));
  for (int i = 0; i < kAlike; ++i) write(i, to_bytes("no image"));
  EXPECT_THAT(message_of<Error>([&] { images().decode().batch({.global_batch = 4}).explain(); }),
              AllOf(HasSubstr("batch(): the size of field 'image'"), HasSubstr("decode(height=, width=)")));
}

TEST_F(FirstImage, IsReadOnlyWhereItIsNeeded) {
  const auto source = fake_jpegs(5);
  const Dataset data = Dataset::from(source).decode();
  data.map(random_resized_crop({.size = 8})).batch({.global_batch = 2}).explain();
  data.map(resize(9) | center_crop(8)).batch({.global_batch = 2}).explain();
  data.explain();
  EXPECT_EQ(source->reads(), 0U);
}

TEST_F(FirstImage, CountsTheWayItIsShown) {
  const Bytes turned = jpeg_with_orientation(encode_jpeg(make_picture(9, 11, 3, 0)), Orientation::kRightTop, true);
  write(0, turned);
  EXPECT_EQ(images().decode({.apply_orientation = true}).batch({.global_batch = 2}).fields()[0].shape,
            (Shape{11, 9, 3}));
  EXPECT_EQ(images().decode().batch({.global_batch = 2}).fields()[0].shape, (Shape{9, 11, 3}));
}

TEST_F(FirstImage, CannotBeLookedAtInAStream) {
  const Fields fields{{.name = "image", .dtype = DType::kU8, .shape = {}, .encoding = Encoding::kImage}};
  const Dataset data = Dataset::from(record_stream({.fields = fields, .open = [](std::uint64_t) {
                                                      ADD_FAILURE() << "opened to look";
                                                      return [](RecordWriter&) { return false; };
                                                    }}));
  EXPECT_THAT(message_of<Error>([&] { data.decode().batch({.global_batch = 2}).explain(); }),
              HasSubstr("decode(height=, width=)"));
}

// A server that is not there for a moment must not change what the images of this worker measure.
TEST_F(FirstImage, IsNotReplacedWhereItCannotBeReadNow) {
  class Away final : public Source {
   public:
    Away() {
      info_.name = "away";
      info_.records = 3;
      info_.fields = {{.name = "image", .dtype = DType::kU8, .shape = {}, .encoding = Encoding::kImage}};
    }
    const SourceInfo& info() const noexcept override { return info_; }
    RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
      if (index == 0) throw DataError(ErrorCode::kIo, "cannot be read", {.source = "away", .record = 0});
      scratch = encode_jpeg(make_picture(4, 5, 3, index));
      return {.fields = {std::span<const std::byte>(scratch)}};
    }
    std::string describe(std::uint64_t) const override { return "away"; }

   private:
    SourceInfo info_;
  };
  const Dataset data = Dataset::from(std::make_shared<Away>());
  EXPECT_THROW(data.decode().batch({.global_batch = 2}).explain(), DataError);
}

}  // namespace
}  // namespace headrace::test
