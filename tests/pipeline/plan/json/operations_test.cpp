// JSON of operations, of options and of parts that have names.
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/pipeline/option_json.h"
#include "headrace/pipeline/plan/json/option_reader.h"
#include "headrace/pipeline/plan/json/option_writer.h"
#include "headrace/pipeline/plan/json/parse.h"
#include "headrace/tests/pipeline/plan/json/change_options.h"
#include "headrace/tests/pipeline/plan/json/plan_json.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/data.h"

namespace headrace::test {
namespace {

// Every operation goes through JSON with each of its options, to the last bit.

template <typename Options>
void expect_all_shown() {
  ChangeAll all(0);
  const OperationPtr usual = define(Options{});
  usual->visit_options(all);
  int members = count_members<Options>();
  if constexpr (requires(Options options) { options.along; }) members += count_members<Along>() - 1;
  EXPECT_EQ(all.count(), members) << usual->name() << ": each_field() leaves a member out";
}

template <typename... Options>
void expect_each_shown(OperationList<Options...> /*list*/) {
  (expect_all_shown<Options>(), ...);
}

TEST(PlanJsonOperations, ShowEveryMember) { expect_each_shown(DataOperations()); }

// Whoever declares an operation and forgets the table is told here.
TEST(PlanJsonOperations, AreAllInTheTable) {
  const std::vector<std::byte> bytes = read_whole_file(source_file("pipeline/operations.h"));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  static constexpr std::string_view kDeclared = "\nOperationPtr define(";
  std::size_t declared = 0;
  for (std::size_t at = 0; (at = text.find(kDeclared, at)) != std::string_view::npos; ++at) ++declared;
  EXPECT_EQ(data_operations().size(), declared);
}

TEST(PlanJsonOperations, KeepEveryOptionToTheBit) {
  const PlanOptions plan;
  for (const OperationPtr& usual : data_operations()) {
    EXPECT_EQ(find_operation(usual->name()), usual);
    for (std::uint32_t round = 0; round < 300; ++round) {
      ChangeAll change(round);
      const OperationPtr changed = usual->visit_options(change);
      const auto json =
          plan_json::write_options(usual->name(), [&](auto& visit) { changed->visit_options(visit); });
      const nlohmann::json parsed = plan_json::parse(plan_json::print(json));
      plan_json::OptionReader reader(plan_json::JsonPlace(parsed), plan);
      ASSERT_EQ(usual->visit_options(reader)->describe(), changed->describe()) << json;
    }
  }
}

// Such a stream with each; with its defaults where there is no line for it.
TEST(PlanJsonOperations, GiveTheSameStream) {
  const Operations floats = normalize({0.1F, 0.2F, 1.0F / 3}, {0.3F, 0.7F, 0.1F});
  const Operations soft = one_hot(10, 0.1F);
  const std::map<std::string, Operations> chains{
      {"adjust_sharpness", adjust_sharpness(1.7F)},
      {"autocontrast", autocontrast(0.3F)},
      {"brightness_contrast", floats | brightness_contrast({.brightness = 0.3F, .contrast = 0.1F})},
      {"cast", cast(DType::kF32)},
      {"center_crop", center_crop(7)},
      {"color_jitter", color_jitter({.brightness = 0.1F, .contrast = 0.7F, .saturation = 0.3F, .hue = 0.01F})},
      {"cutmix", cutmix({.alpha = 0.9F, .probability = 0.7F})},
      {"cutout", cutout(4, {1.0F, 7.0F, 250.0F})},
      {"equalize", equalize(0.4F)},
      {"flatten", flatten()},
      {"flip", alternating_flip()},
      {"gaussian_blur", gaussian_blur({.kernel_size = 5, .sigma = {0.3F, 2}, .probability = 0.9F})},
      {"grayscale", grayscale({.probability = 0.4F})},
      {"invert", invert(0.2F)},
      {"mixup", mixup({.alpha = 0.1F, .probability = 0.9F})},
      {"normalize", floats},
      {"one_hot", soft},
      {"pad_crop", pad_crop(11, 3, Padding::kReflect)},
      {"per_image_standardization", per_image_standardization()},
      {"posterize", posterize(3, 0.7F)},
      {"rand_augment", rand_augment({.operations = 3, .magnitude = 20, .fill = {1, 2, 3}})},
      {"random_affine", random_affine({.degrees = {-20, 40}, .scale = {0.7F, 1}, .shear = {0, 9}})},
      {"random_erasing", random_erasing({.area = {0.02F, 0.5F}, .fill = {9}})},
      {"random_resized_crop", random_resized_crop({.size = 6, .area = {0.3F, 1}, .ratio = {0.75F, 1.7F}})},
      {"random_rotation", random_rotation({.degrees = {-10, 90}, .interpolation = Interpolation::kBilinear})},
      {"resize", resize(9)},
      {"resize_to", resize(9, 14)},
      {"solarize", solarize(99, 0.8F)},
      {"to_layout", floats | to_layout(ImageLayout::kChannelsFirst)},
      {"layout_is", floats | layout_is(ImageLayout::kChannelsLast) | flip()},
      {"trivial_augment_wide", trivial_augment_wide({.bins = 11})},
      {"vertical_flip", vertical_flip(0.4F)},
  };
  const SourcePtr source = noise_images(29, 12, 10);
  const PlanParts parts{.sources = {{"noise", source}}};
  for (const OperationPtr& operation : data_operations()) {
    const auto found = chains.find(operation->name());
    const Operations chain = found != chains.end() ? found->second : Operations(Operation(operation));
    const Dataset images = Dataset::from(source).shuffle({.seed = 1});
    const bool mixes = operation->is_batch_level();
    const Dataset batches = images.map(mixes ? floats | soft : chain).batch({.global_batch = 8});
    expect_same_stream(mixes ? batches.map(chain) : batches, parts);
  }
}

TEST(PlanJsonOperations, TakeOneNumberForTwoWhereThatIsSaid) {
  const auto described = [](const char* name, const char* options) {
    return describe(operation(name, options).list()[0]);
  };
  EXPECT_THAT(described("random_affine", R"({"degrees": 30, "shear": 5})"),
              testing::HasSubstr("degrees=[-30, 30], translate=[0, 0], scale=[1, 1], shear=[-5, 5, 0, 0]"));
  EXPECT_THAT(described("random_affine", R"({"shear": [1, 2]})"), testing::HasSubstr("shear=[1, 2, 0, 0]"));
  EXPECT_THAT(described("gaussian_blur", R"({"sigma": 3})"), testing::HasSubstr("sigma=[3, 3]"));
  for (const char* wrong :
       {R"({"scale": 1.5})", R"({"scale": [1]})", R"({"degrees": [3]})", R"({"shear": [1, 2, 3]})"}) {
    EXPECT_THROW(operation("random_affine", wrong), ConfigError) << wrong;
  }
}

// Options and sources that a program hands over as JSON.

TEST(OptionJson, SetsWhatItHolds) {
  const auto loader = options_from_json<LoaderOptions>(
      R"({"epochs": 3, "on_error": "skip", "quarantine": "bad.jsonl", "start": "headrace-loader-2 00000000000000aa 7 0 -",
          "world_replicas": 4, "converted": "bfloat16"})",
      "loader");
  EXPECT_EQ(loader.epochs, 3U);
  EXPECT_EQ(loader.errors.on_error, OnError::kSkip);
  EXPECT_EQ(loader.errors.quarantine, "bad.jsonl");
  EXPECT_EQ(loader.start, (LoaderState{.fingerprint = 0xAA, .sequence = 7}));
  EXPECT_EQ(loader.world.total, 4);
  EXPECT_EQ(loader.converted, DType::kBF16);
  EXPECT_EQ(loader.seed, 0U);
  EXPECT_EQ(options_from_json<InspectOptions>("", "inspection", {.max_listed = 9}).max_listed, 9U);
}

TEST(OptionJson, OfConversions) {
  const auto split = [](const std::string& json) {
    return options_from_json<ConvertOptions>(json, "conversion", {.split = Split::kTest}).split;
  };
  EXPECT_EQ(split("{}"), Split::kTest);
  EXPECT_EQ(split(R"({"split": "train"})"), Split::kTrain);
  EXPECT_EQ(split(R"({"split": "all"})"), std::nullopt);
  const auto read = options_from_json<ConvertOptions>(
      R"({"classes_at": "2", "columns": ["a"], "label_type": "number", "max_bad_share": 0.5})", "conversion");
  EXPECT_EQ(read.source.layout.classes_at, "2");
  EXPECT_EQ(read.source.columns.columns, std::vector<std::string>{"a"});
  EXPECT_EQ(read.source.columns.label_type, LabelType::kNumber);
  EXPECT_EQ(read.errors.max_bad_share, 0.5);
}

TEST(OptionJson, RefusalsNameTheWholeAndThePlace) {
  const auto of = [](const std::string& json) {
    return message_of([&] { options_from_json<LoaderOptions>(json, "loader"); });
  };
  EXPECT_THAT(of(R"({"epohcs": 3})"),
              StartsWith("loader: there is no option \"epohcs\": did you mean 'epochs'? (it has seed, epochs, "));
  EXPECT_THAT(of(R"({"epochs": -3})"), StartsWith("loader at epochs: -3 where a whole number from 0 to"));
  EXPECT_THAT(
      of(R"({"resident": "sometimes"})"),
      StartsWith("loader at resident: \"sometimes\" is not among the choices (write auto, never or always)"));
  EXPECT_THAT(of("7"), StartsWith("loader: 7 where an object is needed"));
  EXPECT_THAT(of("{"), StartsWith("loader: is no JSON: line 1, column 2"));
}

TEST(OpenDataset, RefusalsNameTheOpener) {
  const auto of = [](const std::string& path, const std::string& options) {
    return message_of([&] { open_dataset(path, options); });
  };
  EXPECT_THAT(of("x", R"({"as": "web_datset"})"),
              StartsWith("plan: there is no source \"web_datset\": did you mean 'web_dataset'? (write named, "));
  EXPECT_THAT(of("x", R"({"spilt": "test"})"),
              StartsWith("plan at open: there is no option \"spilt\": did you mean"));
  EXPECT_THAT(of("x", R"({"path": "y"})"), StartsWith("plan at path: the path is given twice"));
  EXPECT_THAT(of("", R"({"split": "test"})"), StartsWith("plan at open: 'path' is missing"));
}

TEST(WithStage, TakesPartsByTheirNames) {
  const PlanParts parts{
      .filters = {{.name = "third", .keeps = [](const ExampleView& view) { return view.label() % 3 == 0; }}}};
  const Dataset all = Dataset::from(noise_images(9, 8, 8));
  EXPECT_EQ(all.with_stage("filter", R"({"named": "third"})", parts).fingerprint(),
            all.filter(parts.filters[0]).fingerprint());
  EXPECT_THAT(message_of([&] { all.with_stage("filter", R"({"named": "third"})"); }),
              StartsWith("plan at filter: the filter \"third\" is code, and is not among the parts"));
}

// Code has no JSON: it is written by name where the caller holds it, and checked when it is read.

Operations darker(std::uint32_t version = 1) {
  return user_map({.name = "darker",
                   .version = version,
                   .output = {.dtype = DType::kU8, .shape = {8, 8, 3}},
                   .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                     std::ranges::transform(in, out.begin(), [](std::byte value) { return value >> 1; });
                   }});
}

Operations sum() {
  return user_operation({.name = "sum",
                         .version = 3,
                         .inputs = {"label"},
                         .outputs = {{.name = "twice", .dtype = DType::kI64, .shape = {}}},
                         .function = [](UserSample& sample) {
                           const std::int64_t twice = 2 * sample.elements<std::int64_t>(0)[0];
                           sample.put(0, std::as_bytes(std::span(&twice, 1)));
                         }});
}

RecordFilter odd(std::uint32_t version = 1) {
  return {.name = "odd", .version = version, .keeps = [](const ExampleView& record) {
            return record.label() % 2 == 1;
          }};
}

class PlanJsonNamedParts : public ::testing::Test {
 protected:
  Dataset plan() const {
    return Dataset::from(parts_.sources.at("noise"))
        .filter(odd())
        .map(darker() | flip() | sum())
        .batch({.global_batch = 4});
  }
  std::string refusal_of(const std::string& json) const {
    return message_of([&] { Dataset::from_json(json, {.parts = parts_}); });
  }

  PlanParts parts_{.sources = {{"noise", noise_images(23, 8, 8)}},
                   .operations = {flip() | darker(), sum()},
                   .filters = {odd()}};
};

TEST_F(PlanJsonNamedParts, AreWrittenByName) {
  expect_same_stream(plan(), parts_);
  const std::string json = plan().to_json(parts_);
  EXPECT_THAT(json, HasSubstr(R"({"named": "darker", "version": 1})"));
  EXPECT_THAT(json, HasSubstr(R"({"named": "sum", "version": 3})"));
  EXPECT_THAT(json, HasSubstr(R"({"filter": {"named": "odd", "version": 1}})"));
  EXPECT_THAT(json, HasSubstr(R"({"named": "noise", "fingerprint": ")"));
}

TEST_F(PlanJsonNamedParts, AreNeeded) {
  const auto refusal_without = [&](auto&& take_away) {
    PlanParts fewer = parts_;
    take_away(fewer);
    return std::pair(message_of([&] { plan().to_json(fewer); }),
                     message_of([&] { Dataset::from_json(plan().to_json(parts_), {.parts = fewer}); }));
  };
  const auto [source, no_source] = refusal_without([](PlanParts& parts) { parts.sources.clear(); });
  EXPECT_THAT(source, StartsWith("to_json(): source: the source noise is code, which JSON cannot hold"));
  EXPECT_THAT(no_source, StartsWith("plan at source: the source \"noise\" is not among the parts"));
  const auto [operation, no_operation] = refusal_without([](PlanParts& parts) { parts.operations = {sum()}; });
  EXPECT_THAT(operation, StartsWith("to_json(): stages[1].map[0]: user_map('darker', version=1"));
  EXPECT_THAT(operation, HasSubstr("PlanParts::operations"));
  EXPECT_THAT(no_operation, StartsWith("plan at stages[1].map[0]: the operation \"darker\", version 1, is code"));
  EXPECT_THAT(no_operation, HasSubstr("holds \"sum\" version 3"));
  const auto [filter, no_filter] = refusal_without([](PlanParts& parts) { parts.filters.clear(); });
  EXPECT_THAT(filter, StartsWith("to_json(): stages[0].filter: filter(odd, version 1) is code"));
  EXPECT_THAT(no_filter, StartsWith("plan at stages[0].filter: the filter \"odd\", version 1, is code"));
}

TEST_F(PlanJsonNamedParts, OfAnotherVersionAreOthers) {
  const std::string json = plan().to_json(parts_);
  parts_.operations.front() = darker(2);
  EXPECT_THAT(refusal_of(json), StartsWith("plan at stages[1].map[0]: the operation \"darker\", version 1,"));
  EXPECT_THAT(refusal_of(json), HasSubstr("holds \"darker\" version 2 or \"sum\" version 3"));
  EXPECT_THAT(message_of([&] { plan().to_json(parts_); }), HasSubstr("stages[1].map[0]"));
  parts_.operations.push_back(darker(1));  // both
  EXPECT_EQ(Dataset::from_json(json, {.parts = parts_}).fingerprint(), plan().fingerprint());
  parts_.filters = {odd(2)};
  EXPECT_THAT(refusal_of(json), StartsWith("plan at stages[0].filter: the filter \"odd\", version 1,"));
}

// Without a version any will do.
TEST_F(PlanJsonNamedParts, MayLeaveTheVersionOut) {
  const std::string json = R"({"headrace_plan": 2, "source": {"named": "noise"}, "stages": [
    {"filter": {"named": "odd"}}, {"map": [{"named": "darker"}, {"flip": {}}, {"named": "sum"}]},
    {"batch": {"global_batch": 4}}]})";
  EXPECT_EQ(Dataset::from_json(json, {.parts = parts_}).fingerprint(), plan().fingerprint());
}

TEST_F(PlanJsonNamedParts, SourcesAreToldByTheirContent) {
  const std::string json = plan().to_json(parts_);
  parts_.sources["noise"] = noise_images(23, 8, 8);  // the same once more
  EXPECT_EQ(Dataset::from_json(json, {.parts = parts_}).fingerprint(), plan().fingerprint());
  EXPECT_EQ(plan().to_json(parts_), json);
  const std::string written = to_hex(parts_.sources["noise"]->info().fingerprint);
  parts_.sources["noise"] = noise_images(24, 8, 8);
  EXPECT_THAT(refusal_of(json), StartsWith("plan at source: the source \"noise\" has the fingerprint "));
  EXPECT_THAT(refusal_of(json), HasSubstr("and the plan was written for \"" + written + "\""));
}

TEST_F(PlanJsonNamedParts, HaveNoOtherOptions) {
  EXPECT_THAT(refusal_of(R"({"headrace_plan": 2, "source": {"named": "noise", "seed": 1}})"),
              StartsWith("plan at source: there is no option \"seed\" (it has named, fingerprint)"));
  EXPECT_THAT(refusal_of(R"({"headrace_plan": 2, "source": {"named": "noise"}, "stages": [
                {"map": [{"named": "sum", "version": "3"}]}]})"),
              StartsWith("plan at stages[0].map[0].version: \"3\" where a whole number"));
}

}  // namespace
}  // namespace headrace::test
