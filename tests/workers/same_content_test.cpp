// The workers of a fit read the same data: by their content, wherever they lie.
#include "headrace/devices/registry.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/workers/world_fixture.h"
#include "headrace/train/graph.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace::test {
namespace {

namespace fs = std::filesystem;

constexpr int kImages = 40;
constexpr std::size_t kBytes = 400;  // of every file: what follows the image's end is passed over

Bytes image(int number) {
  Bytes png = encode_png(make_picture(6, 6, 3, static_cast<std::uint64_t>(number)));
  png.resize(kBytes);
  return png;
}

std::string name_of(int number) {
  return std::string(number % 2 == 0 ? "cat/" : "dog/") + std::to_string(number) + ".png";
}

void write_folder(const TempFolder& folder, const std::string& name) {
  for (int i = 0; i < kImages; ++i) folder.write(name + "/" + name_of(i), image(i));
}

// A WebDataset where the images have labels beside them, class folders otherwise.
fs::path write_tar(const TempFolder& folder, const std::string& name, bool labelled) {
  TarBuilder tar;
  for (int i = 0; i < kImages; ++i) {
    const std::string file = labelled ? std::to_string(i) + ".png" : name_of(i);
    tar.add(file, image(i));
    if (labelled) tar.add(std::to_string(i) + ".cls", to_bytes(std::to_string(i % 2)));
  }
  return folder.write(name, tar.finish());
}

// What each of two workers says of a fit and an evaluation of its data.
std::vector<std::string> content_errors_of(const std::vector<fs::path>& data, bool trains = true) {
  return run_workers(2, [&](Workers& workers) {
    DeviceGroup devices = open_devices("cpu:1");
    Strategy strategy(devices, {.announce = false, .workers = {&workers, [](Workers*) {}}});
    Model model = strategy.build([](Graph& g) { return g.dense(g.flatten(g.input("image", {6, 6, 3})), 2); });
    model.compile({});
    const auto path = data[static_cast<std::size_t>(workers.rank())];
    const Dataset dataset = Dataset::from(open_source(path, Split::kTrain))
                                .decode({.height = 6, .width = 6})
                                .map(normalize({0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}))
                                .batch({.global_batch = 8});
    if (trains) {
      model.fit(dataset, {.epochs = 1, .verbose = 0});
    } else {
      model.evaluate(dataset);
    }
  });
}

TEST(SameContent, IsComparedWhereverTheDataLie) {
  const TempFolder folder;
  write_folder(folder, "one");
  write_folder(folder, "far/away/two");
  fs::create_directory_symlink(folder / "far/away/two", folder / "link");
  EXPECT_THAT(content_errors_of({folder / "one", folder / "far/away/two/"}), Each(IsEmpty()));
  EXPECT_THAT(content_errors_of({folder / "far/../one", folder / "link"}), Each(IsEmpty()));
  EXPECT_THAT(content_errors_of({write_tar(folder, "a.tar", false), write_tar(folder, "far/b.tar", false)}),
              Each(IsEmpty()));
}

TEST(SameContent, NamesOneFileThatDiffers) {
  const auto differ = [](const std::string& name) {
    return Each(AllOf(HasSubstr("the workers differ in their data: the content of record"),
                      HasSubstr(name + " of "), HasSubstr("worker 1")));
  };
  const TempFolder folder;
  for (const char* name : {"one", "two"}) write_folder(folder, name);
  TempFolder::patch(folder / ("two/" + name_of(17)), kBytes - 1, std::byte{1});
  for (const bool trains : {true, false}) {
    EXPECT_THAT(content_errors_of({folder / "one", folder / "two"}, trains), differ(name_of(17)));
  }
  for (const bool labelled : {true, false}) {
    const std::string at = labelled ? "23.png" : name_of(23);
    const fs::path one = write_tar(folder, "one.tar", labelled), two = write_tar(folder, "two.tar", labelled);
    const Bytes packed = read_whole_file(two), wanted = image(23);
    const auto found = std::ranges::search(packed, wanted);
    ASSERT_FALSE(found.empty());
    const auto offset = static_cast<std::size_t>(found.begin() - packed.begin());
    TempFolder::patch(two, offset + kBytes - 1, std::byte{1});
    EXPECT_THAT(content_errors_of({one, two}), differ(at));
  }
}

TEST(SameContent, IsReadOnceAsLongAsAllWorkersKeepTheirSource) {
  const TempFolder folder;
  for (const char* name : {"one", "two"}) write_folder(folder, name);
  const std::vector<std::string> errors = run_workers(2, [&](Workers& workers) {
    DeviceGroup devices = open_devices("cpu:1");
    Strategy strategy(devices, {.announce = false, .workers = {&workers, [](Workers*) {}}});
    Model model = strategy.build([](Graph& g) { return g.dense(g.flatten(g.input("image", {6, 6, 3})), 2); });
    model.compile({});
    const auto opened = [&] {
      return Dataset::from(open_source(folder / (workers.rank() == 0 ? "one" : "two"), Split::kTrain))
          .decode({.height = 6, .width = 6})
          .map(normalize({0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}))
          .batch({.global_batch = 8});
    };
    const Dataset dataset = opened();
    model.evaluate(dataset);
    if (workers.rank() == 1) TempFolder::patch(folder / ("two/" + name_of(17)), kBytes - 1, std::byte{1});
    workers.all_gather("patched");
    model.evaluate(dataset);
    model.fit(dataset, {.epochs = 1, .verbose = 0});
    workers.all_gather("not read again");
    model.evaluate(workers.rank() == 1 ? opened() : dataset);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("the content of record"), HasSubstr(name_of(17)))));
  EXPECT_THAT(errors, Each(HasSubstr("worker 1")));
}

}  // namespace
}  // namespace headrace::test
