// A program that embeds the engine and the trainer, built without CMake: what crosses the border between it and
// the shared libraries. Ends with 0 where all is as it should be.
#include <headrace/cache/memory_cache.h>
#include <headrace/devices/base/error.h>
#include <headrace/devices/registry.h>
#include <headrace/pipeline/loader.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/strategy.h>

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <stdexcept>
#include <string>

using namespace headrace;

void expect(bool holds, std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "line %u: not as expected\n", static_cast<unsigned>(where.line()));
  std::exit(1);
}

// What a function throws, as its own type and not as one of its bases.
template <typename Thrown, typename Function>
Thrown thrown_by(const Function& function) {
  try {
    function();
  } catch (const Thrown& thrown) {
    expect(typeid(thrown) == typeid(Thrown));
    return thrown;
  }
  std::fprintf(stderr, "nothing is thrown\n");
  std::exit(1);
}

// A source of the program's own: the engine calls it from its threads.
class Squares final : public Source {
 public:
  explicit Squares(std::uint64_t bad) : bad_(bad) {}

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index == bad_)
      throw DataError(ErrorCode::kDataCorrupt, "no square", {.source = "squares", .record = index});
    const auto square = static_cast<std::int64_t>(index * index);
    const auto bytes = std::as_bytes(std::span(&square, 1));
    scratch.assign(bytes.begin(), bytes.end());
    return {.fields = {scratch}};
  }
  std::string describe(std::uint64_t index) const override { return "square " + std::to_string(index); }

 private:
  std::uint64_t bad_;
  SourceInfo info_{.name = "squares",
                   .records = 100,
                   .fields = {{.name = "square", .dtype = DType::kI64, .shape = {}}},
                   .classes = {},
                   .fingerprint = 100};
};

Dataset squares(std::uint64_t bad = DataLocation::kUnknown) {
  return Dataset::from(std::make_shared<Squares>(bad)).batch({.global_batch = 10});
}

std::int64_t sum(Loader& loader) {
  std::int64_t total = 0;
  while (auto batch = loader.next()) {
    batch->ready().wait();
    for (std::int64_t i = 0; i < batch->examples(); ++i) total += batch->tensor("square").as<std::int64_t>()[i];
  }
  return total;
}

void check_errors() {
  const auto config = thrown_by<ConfigError>([] { open_devices("toaster"); });
  expect(config.code() == ErrorCode::kInvalidArgument && !config.hint().empty());
  expect(thrown_by<DeviceError>([] { open_devices("tpu"); }).device() == "tpu");

  DeviceGroup devices = open_devices("cpu", DeviceNeed::kMemory);
  Loader loader(squares(42), devices);
  const auto data = thrown_by<DataError>([&] { sum(loader); });  // thrown by the program, passed on by the library
  expect(data.location().record == 42);

  const UserMap throws{.name = "throws",
                       .field = "square",
                       .output = {.dtype = DType::kI64, .shape = {}},
                       .function = [](auto&&...) { throw std::out_of_range("the program's own"); }};
  Loader failing(Dataset::from(std::make_shared<Squares>(DataLocation::kUnknown))
                     .map(user_map(throws))
                     .batch({.global_batch = 10}),
                 devices);
  expect(std::string(thrown_by<DataError>([&] { sum(failing); }).what()).find("the program's own") !=
         std::string::npos);
}

void check_stream() {
  DeviceGroup devices = open_devices("cpu", DeviceNeed::kMemory);
  const Dataset plan = Dataset::from(std::make_shared<Squares>(DataLocation::kUnknown))
                           .shuffle({.seed = 1})
                           .batch({.global_batch = 7});
  Loader loader(plan, devices);
  expect(sum(loader) == 99 * 100 * 199 / 6);
  expect(LoaderState::parse(loader.state().serialize()) == loader.state());
}

// Types are the same on both sides.
void check_types() {
  const std::shared_ptr<SampleCache> cache = memory();
  expect(dynamic_cast<MemoryCache*>(cache.get()) != nullptr);
  expect(typeid(*cache) == typeid(MemoryCache));
}

void check_trainer() {
  DeviceGroup devices = open_devices("cpu:2");
  Strategy strategy(devices, {.announce = false, .standalone = true});
  expect(strategy.local_replicas() == 2);
  strategy.build([](Graph& g) -> Results {
    g.dense(g.input("square", {4}), 2);
    throw std::logic_error("the program's own");
  });
}

int main() {
  check_errors();
  check_stream();
  check_types();
  expect(thrown_by<std::logic_error>(check_trainer).what() == std::string("the program's own"));
  std::puts("embedded");
}
