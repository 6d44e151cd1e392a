// What of a plan evaluates the model that was trained by it.
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"

namespace headrace::test {
namespace {

// The stages as JSON, without spaces.
std::vector<std::string> stages_of_evaluation(const Dataset& data) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(data.evaluation_json());
  EXPECT_EQ(json["headrace_plan"], 2);
  EXPECT_EQ(json["source"].dump(), R"({"named":"data"})");
  std::vector<std::string> stages;
  for (const auto& stage : json["stages"]) stages.push_back(stage.dump());
  return stages;
}

std::string refusal_of_evaluation(const Dataset& data) {
  return message_of([&] { data.evaluation_json(); });
}

class EvaluationJson : public ::testing::Test {
 protected:
  EvaluationJson() {
    for (const auto& [name, bytes] : make_image_files()) folder_.write("images/" + name, bytes);
  }
  Dataset encoded() const { return Dataset::from(image_folder(folder_ / "images", Split::kTrain)); }
  Dataset pixels() const { return Dataset::from(noise_images(13, 8, 8)); }

  const TempFolder folder_;
  const std::string decoded_ = R"({"decode":{"height":8,"width":8,"apply_orientation":false}})";
  const std::string halves_ = R"({"map":[{"normalize":{"mean":[0.5],"std":[0.25]}}]})";
  const std::string batch_ = R"({"batch":{"global_batch":5,"drop_remainder":false}})";
  const Operations normal_ = normalize({0.5F}, {0.25F});
};

TEST_F(EvaluationJson, HasWhatIsDoneToEveryRecordAlike) {
  const Dataset data = encoded()
                           .decode({.height = 8, .width = 8})
                           .cache(memory())
                           .map(normal_ | to_layout(ImageLayout::kChannelsFirst) | flatten() | one_hot(10))
                           .batch({.global_batch = 5})
                           .prefetch(3);
  EXPECT_THAT(
      stages_of_evaluation(data),
      ElementsAre(decoded_,
                  R"({"map":[{"normalize":{"mean":[0.5],"std":[0.25]}},{"to_layout":{"layout":"channels_first"}},)"
                  R"({"flatten":{}},{"one_hot":{"classes":10,"smoothing":0.0,"field":"label"}}]})",
                  batch_));
}

TEST_F(EvaluationJson, LeavesOutWhatChoosesOrOrdersRecords) {
  const Dataset data =
      pixels().skip(1).take(11).shard(2, 0).without_shard(3, 1).shuffle().repeat(2).shuffle_window({.size = 4});
  EXPECT_THAT(stages_of_evaluation(data.map(normal_).batch({.global_batch = 5, .drop_remainder = true})),
              ElementsAre(decoded_, halves_, batch_));
}

TEST_F(EvaluationJson, LeavesOutRandomOperationsThatKeepTheSize) {
  const Operations random = pad_crop(8, 2) | flip() | color_jitter({.brightness = 0.2F}) | cutout(2) | normal_ |
                            Operations(BrightnessContrast{.brightness = 0.1F});
  EXPECT_THAT(stages_of_evaluation(pixels().map(random | one_hot(4)).batch({.global_batch = 5}).map(mixup())),
              ElementsAre(decoded_,
                          R"({"map":[{"normalize":{"mean":[0.5],"std":[0.25]}},)"
                          R"({"one_hot":{"classes":4,"smoothing":0.0,"field":"label"}}]})",
                          batch_));
}

// Padded by as much as the crop takes away, images are of its size.
TEST_F(EvaluationJson, TellsTheSizeThatAPaddedCropKeeps) {
  const Dataset data = encoded().decode().map(pad_crop(8, 2) | flip() | normal_).batch({.global_batch = 5});
  EXPECT_THAT(stages_of_evaluation(data), ElementsAre(decoded_, halves_, batch_));
}

TEST_F(EvaluationJson, RefusesRandomOperationsThatMakeAnotherSize) {
  const std::vector<Operations> all{random_resized_crop({.size = 4}), pad_crop(4, 0), pad_crop(4, 2)};
  for (const Operations& operations : all) {
    EXPECT_THAT(refusal_of_evaluation(pixels().map(operations).batch({.global_batch = 5})),
                HasSubstr(describe(operations.list().front())));
  }
  for (const Operations& operations :
       {random_resized_crop({.size = 4}), pad_crop(4, 0), resize(6) | pad_crop(4, 1)}) {
    EXPECT_THAT(refusal_of_evaluation(encoded().decode().map(operations).batch({.global_batch = 5})),
                HasSubstr(describe(operations.list().back())));
  }
}

TEST_F(EvaluationJson, RefusesCode) {
  const auto copy = [](std::span<const std::byte>, const Shape&, std::span<std::byte>, Philox&) {};
  const Operations mine =
      user_map({.name = "mine", .output = {.dtype = DType::kU8, .shape = {8, 8, 3}}, .function = copy});
  EXPECT_THAT(refusal_of_evaluation(pixels().map(mine).batch({.global_batch = 5})), HasSubstr("mine"));
  const RecordFilter even{.name = "even", .keeps = [](const ExampleView& view) { return view.label() % 2 == 0; }};
  EXPECT_THAT(refusal_of_evaluation(pixels().filter(even).batch({.global_batch = 5})),
              HasSubstr("filter(even, version 1)"));
  EXPECT_THAT(
      refusal_of_evaluation(
          zip({pixels(), Dataset::from(numbers(13))}, {.suffixes = {"", "_2"}}).batch({.global_batch = 5})),
      HasSubstr("zip()"));
}

TEST_F(EvaluationJson, KeepsFiltersByLabel) {
  EXPECT_THAT(stages_of_evaluation(pixels().filter(with_labels({1, 2})).batch({.global_batch = 5})),
              ElementsAre(decoded_, HasSubstr(R"({"filter":{"labels":[1,2])"), batch_));
}

TEST_F(EvaluationJson, TakesPartsThatWereTreatedAlike) {
  const Dataset some = pixels().take(3), odd = pixels().filter(with_labels({1}));
  EXPECT_THAT(stages_of_evaluation(mix({some, pixels()}).map(normal_).batch({.global_batch = 5})),
              ElementsAre(decoded_, halves_, batch_));
  EXPECT_THAT(
      stages_of_evaluation(concatenate({some.map(normal_), pixels().map(normal_)}).batch({.global_batch = 5})),
      ElementsAre(decoded_, halves_, batch_));
  EXPECT_THAT(refusal_of_evaluation(concatenate({some, odd}).batch({.global_batch = 5})), HasSubstr("combined"));
}

TEST_F(EvaluationJson, HasTheLastBatchAndDropsWhatIsDoneToBatches) {
  const Dataset data =
      pixels().batch({.global_batch = 3}).shuffle().unbatch().map(normal_).batch({.global_batch = 5}).take(2);
  EXPECT_THAT(stages_of_evaluation(data), ElementsAre(decoded_, halves_, batch_));
  const Dataset other = Dataset::from_json(data.to_json({.sources = {{"pixels", data.source()}}}),
                                           {.parts = {.sources = {{"pixels", data.source()}}}, .global_batch = 2});
  EXPECT_EQ(other.explain().find("batch(global_batch=3, drop_remainder=false) | shuffle(seed=0, "
                                 "reshuffle_each_epoch=true) | unbatch()") != std::string::npos,
            true);
  EXPECT_EQ(other.global_batch(), 2);
}

// The plan's operations on other data: the same bits as the plan itself makes of them.
TEST_F(EvaluationJson, RunsOnOtherData) {
  const auto on = [&](const Dataset& data) { return data.map(normal_).batch({.global_batch = 5}); };
  const std::string json = on(pixels().shuffle()).evaluation_json();
  const SourcePtr others = noise_images(7, 8, 8);
  EXPECT_EQ(cpu_digests_of(Dataset::from_json(json, {.allow_paths = false, .data = others}), {}),
            cpu_digests_of(on(Dataset::from(others)), {}));
  const Dataset images = Dataset::from_json(json, {.data = image_folder(folder_ / "images", Split::kTrain)});
  EXPECT_THAT(images.explain(), HasSubstr("decode(8 x 8)")) << "where they are encoded";
  EXPECT_EQ(Dataset::from_json(json, {.data = others, .global_batch = 3}).global_batch(), 3);
}

TEST_F(EvaluationJson, PadsToTheLengthThatWasFound) {
  const SourcePtr growing = generator({.name = "growing",
                                       .fields = {{.name = "x", .dtype = DType::kU8, .shape = {Shape::kDynamic}}},
                                       .records = 4,
                                       .function = [](std::uint64_t index, RecordWriter& record) {
                                         const auto room = record.allocate(0, index + 1);
                                         std::ranges::fill(room, std::byte{7});
                                       }});
  const std::string pad = R"("pad":[{"field":"x","length":4,"value":0}])";
  EXPECT_THAT(stages_of_evaluation(Dataset::from(growing).padded_batch({.global_batch = 2})),
              ElementsAre(R"({"padded_batch":{"global_batch":2,"drop_remainder":false,)" + pad + "}}"));
}

}  // namespace
}  // namespace headrace::test
