#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/json_mutation.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::fuzz {

using namespace test;

namespace {

// No plan may name a path here: mutated ones would be opened, and written to.
PlanOptions plan_options() {
  RecordFilter filter{.name = "even", .keeps = [](const ExampleView& record) { return record.label() % 2 == 0; }};
  UserMap map{.name = "m", .output = {.dtype = DType::kU8, .shape = {4}}, .function = [](auto&&...) {}};
  return {.parts = {.sources = {{"noise", noise_images(7, 9, 8)}, {"numbers", numbers(5)}},
                    .operations = {user_map(std::move(map))},
                    .filters = {std::move(filter)}},
          .allow_paths = false};
}

const PlanOptions& options() {
  static const PlanOptions made = plan_options();
  return made;
}

Bytes written(const Dataset& dataset) { return to_bytes(dataset.to_json(options().parts)); }

}  // namespace

std::vector<Bytes> seeds() {
  const Dataset images = Dataset::from(options().parts.sources.at("noise"));
  const Dataset counted = Dataset::from(options().parts.sources.at("numbers"));
  const Operations chain =
      pad_crop(8, 2) | flip() | normalize({0.1F, 0.2F, 0.3F}, {0.5F, 0.2F, 0.3F}) | one_hot(10, 0.1F);
  const Operations bytes = random_resized_crop({.size = 6}) | resize(7) | color_jitter({.hue = 0.1F}) | cutout(3) |
                           random_affine({.degrees = {0, 9}}) | rand_augment() | random_erasing();
  return {
      written(
          images.shuffle({.seed = 7}).map(chain).batch({.global_batch = 3}).map(mixup() | cutmix()).prefetch(2)),
      written(images.filter(with_labels({1, 2})).cache(memory(99)).map(bytes | cast(DType::kF32) | flatten())),
      written(images.filter(options().parts.filters[0]).map(options().parts.operations[0]).batch({})),
      written(mix({counted.repeat(2).skip(1), counted.shard(2, 1)}, {.weights = {0.25, 1}}).shuffle_window({})),
      written(
          zip({counted, concatenate({counted, interleave({counted})})}, {.suffixes = {"", "_b"}, .strict = false})
              .take(3)),
      written(counted.without_shard(2, 0).shard_for_worker({.count = 2}).batch({.drop_remainder = true})),
  };
}

void run(std::span<const std::byte> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const Dataset read = Dataset::from_json(text, options());
  read.explain();
  const std::string json = read.to_json(options().parts);
  const Dataset again = Dataset::from_json(json, options());
  if (again.fingerprint() != read.fingerprint() || again.to_json(options().parts) != json)
    throw std::logic_error("a plan that was read is another one when it is written and read again");
}

void repair(Bytes& input) {
  static const std::vector<Bytes> sound = seeds();
  make_json(input, sound);
}

}  // namespace headrace::fuzz
