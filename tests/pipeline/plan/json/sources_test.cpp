// Sources say how they were opened: every opener's data are opened again from JSON.
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/plan/json/change_options.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::test {
namespace {

namespace fs = std::filesystem;

class PlanJsonSources : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto files = make_image_files();
    for (const auto& [name, bytes] : files) folder_.write("images/" + name, bytes);
    folder_.write("images.tar", pack_images(files).finish());
    const Bytes picture = encode_jpeg(make_picture(8, 8, 3, 1));
    for (const char* shard : {"web/train-0.tar", "web/train-1.tar"}) {
      TarBuilder tar;
      tar.add("a.jpg", picture).add("a.cls", to_bytes("1"));
      folder_.write(shard, tar.finish());
    }
    Bytes records = frame(example({entry("image", bytes_feature(picture)), entry("label", packed_feature(1))}));
    folder_.write("tf/x.tfrecord", records);
    folder_.write("table.csv", "file,path,kind\na,images/train/cat/0.jpg,3\n");
    folder_.write("numbers.csv", "y,a,b,town\n1,2,3,Ulm\n");
    const Bytes numbers(24, std::byte{1});
    folder_.write("npy/x_train.npy", make_npy("|u1", "(6, 4)", numbers));
  }

  fs::path at(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
};

// The name of the only member of "source".
std::string kind_of(const Dataset& dataset) {
  const std::string json = dataset.to_json();
  const std::size_t from = json.find('"', json.find("\"source\": ") + 10) + 1;
  return json.substr(from, json.find('"', from) - from);
}

TEST_F(PlanJsonSources, AreOpenedAgain) {
  const TempFolder cifar, digits;
  write_cifar(cifar);
  write_digits(digits, 50);
  std::set<std::string> seen;
  const auto expect_opened = [&](const SourcePtr& source) {
    const Dataset dataset = Dataset::from(source);
    expect_same_plan(dataset);
    seen.insert(kind_of(dataset));
  };
  expect_opened(open_source(at("images"), Split::kTest));
  expect_opened(open_source(at("images"), Split::kTrain, {.layout = {.classes_at = "parent"}}));
  expect_opened(open_source(at("web/train-0.tar"), Split::kTrain, {.label_count = 5}));
  expect_opened(image_folder(at("images/test"), Split::kTrain, {.classes_at = "parent"}));
  expect_opened(image_archive(at("images.tar"), {.split = Split::kTest, .memory_limit = 1 << 20}));
  expect_opened(web_dataset(at("web"), {.classes = {"cat", "dög"}, .memory_limit = 1 << 20}));
  expect_opened(web_dataset({at("web/train-1.tar"), at("web/train-0.tar")}, {.label_count = 2}));
  expect_opened(web_stream(at("web/train-0.tar"), {.classes = {"a"}, .fingerprint = ~std::uint64_t{0}}));
  expect_opened(tf_records(at("tf"), TfRecordOptions{.image_keys = {"image"}, .label_keys = {"label"}}));
  expect_opened(tf_records({at("tf/x.tfrecord"), at("tf/x.tfrecord")}, TfRecordOptions{.classes = {"a", "b"}}));
  expect_opened(csv_manifest(at("table.csv"), {.label_column = "kind", .label_count = 9}));
  expect_opened(csv_table(at("numbers.csv"), {.label_column = "y", .columns = {"a", "town:text"}}));
  expect_opened(numpy_arrays(at("npy")));
  expect_opened(idx_folder(digits.path(), Split::kTest, 10));
  expect_opened(idx_files(digits / "train-images-idx3-ubyte", digits / "train-labels-idx1-ubyte"));
  expect_opened(cifar_binary(cifar.path(), Split::kTest));
  convert_dataset(at("images"), at("data.records"));
  expect_opened(record_file(at("data.records"), Split::kTrain));
  for (const SourceOriginPtr& origin : source_origins()) {
    EXPECT_TRUE(seen.contains(origin->name())) << origin->name() << " was not tried";
  }
}

// An option that an opener forgets to show would be lost.
TEST_F(PlanJsonSources, ShowEveryArgument) {
  const int split = 1, path = 1, layout = count_members<LayoutOptions>();
  const std::map<std::string, int> arguments{
      {"open", path + split + count_members<SourceOptions>() - 2 + layout + count_members<ColumnOptions>()},
      {"image_folder", path + split + layout + 1},  // columns.columns: the others are refused
      {"image_archive", path + count_members<ArchiveOptions>() - 1 + layout},
      {"web_dataset", path + count_members<WebDatasetOptions>() - 1 + layout},
      {"web_stream", path + count_members<WebStreamOptions>()},
      {"tf_records", path + count_members<TfRecordOptions>() - 1 + layout},
      {"csv_manifest", path + count_members<CsvOptions>()},
      {"csv_table", path + count_members<CsvOptions>() - 1},
      {"numpy_arrays", path + count_members<NumpyOptions>()},
      {"record_file", path + split},
      {"idx_folder", path + split + 1},
      {"idx_files", 2 * path + 1},
      {"cifar_binary", path + split},
  };
  for (const SourceOriginPtr& origin : source_origins()) {
    ChangeAll all(0);
    origin->visit_arguments(all);
    EXPECT_EQ(all.count(), arguments.at(origin->name())) << origin->name();
  }
}

TEST_F(PlanJsonSources, ServeTheSameStream) {
  const Dataset images = Dataset::from(open_source(at("images"), Split::kTrain));
  expect_same_stream(
      images.shuffle({.seed = 7}).decode().map(random_resized_crop({.size = 6})).batch({.global_batch = 5}));
  const Dataset turned = images.decode({.height = 9, .width = 12, .apply_orientation = true}).map(center_crop(8));
  expect_same_plan(turned.batch({.global_batch = 5}));
}

TEST_F(PlanJsonSources, RelativePathsBeginAtTheBase) {
  const std::string json =
      R"({"headrace_plan": 2, "source": {"open": {"path": "images"}}, "stages": [{"decode": {}},
          {"cache": {"disk": {"folder": "kept"}}}]})";
  const Dataset read = Dataset::from_json(json, {.base = folder_.path()});
  EXPECT_EQ(read.size(), kTrainImages);
  EXPECT_THAT(read.explain(), HasSubstr("cache(disk " + at("kept").string()));
  const std::string absolute = Dataset::from(open_source(at("images"), Split::kTrain)).to_json();
  EXPECT_EQ(Dataset::from_json(absolute, {.base = "/nowhere"}).size(), kTrainImages);
  EXPECT_THROW(Dataset::from_json(json), DataError);
}

TEST_F(PlanJsonSources, PathsStayAsTheyWereGiven) {
  const fs::path relative = fs::relative(at("images"));
  EXPECT_THAT(Dataset::from(open_source(relative, Split::kTrain)).to_json(),
              HasSubstr("\"path\": \"" + relative.string() + "\""));
}

TEST_F(PlanJsonSources, PathsCanBeRefused) {
  const std::string source = Dataset::from(open_source(at("images"), Split::kTrain)).to_json();
  EXPECT_THAT(message_of([&] { Dataset::from_json(source, {.allow_paths = false}); }),
              HasSubstr("plan at source.open.path: names a path, and this plan may name none"));
  const std::string cache = R"({"headrace_plan": 2, "source": {"named": "n"},
                                "stages": [{"cache": {"disk": {"folder": "x"}}}]})";
  const PlanOptions options{.parts = {.sources = {{"n", numbers(3)}}}, .allow_paths = false};
  EXPECT_THAT(message_of([&] { Dataset::from_json(cache, options); }),
              HasSubstr("plan at stages[0].cache.disk.folder: names a path"));
}

// A source that hands on another's description is not that source.
TEST_F(PlanJsonSources, OnlyWhatWasOpenedHasAnOrigin) {
  EXPECT_EQ(numbers(3)->origin(), nullptr);
  EXPECT_THAT(message_of([] { Dataset::from(fake_jpegs(2)).to_json(); }),
              HasSubstr("to_json(): source: the source fake images is code, which JSON cannot hold"));
}

}  // namespace
}  // namespace headrace::test
