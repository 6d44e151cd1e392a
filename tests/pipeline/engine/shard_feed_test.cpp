// Streams of shards: epochs of unknown length, in an order that depends on the shards alone, continued anywhere.
#include "headrace/pipeline/ledger.h"
#include "headrace/pipeline/sources/streams/shard_stream.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kStride = 10'000;  // from the values of one shard to those of the next

// Shard s holds s * kStride, s * kStride + 1, ... "value", i64. Bad records are those of `bad`.
class CountedShards final : public ShardedSource {
 public:
  explicit CountedShards(std::vector<std::uint64_t> sizes, bool has_offsets = true)
      : sizes_(std::move(sizes)), has_offsets_(has_offsets) {
    info_.name = "counted";
    info_.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}};
    info_.fingerprint = 17;
  }

  std::size_t shards() const noexcept override { return sizes_.size(); }
  bool is_remote() const noexcept override { return remote; }
  std::string shard_name(std::size_t shard) const override { return "shard-" + std::to_string(shard); }
  std::unique_ptr<ShardReader> open_shard(std::size_t shard, std::uint64_t offset) const override {
    {
      const std::lock_guard lock(mutex_);
      opened_.push_back({shard, offset});
    }
    return std::make_unique<Reader>(*this, shard, offset == 0 ? 0 : offset - 1);
  }
  std::uint64_t shard_bytes(std::size_t shard) const override { return size_of(shard) + 1; }
  std::unique_ptr<ShardReader> open_part(std::size_t shard, const ByteExtent& part) const override {
    ++parts;
    return std::make_unique<Reader>(*this, shard, part.offset == 0 ? 0 : part.offset - 1);
  }

  std::uint64_t size_of(std::size_t shard) const {
    return sizes_[shard] + (shard + 1 == sizes_.size() ? more.load() : 0);
  }

  // Returns the shards that were opened since the last call, and from which offset.
  std::vector<std::pair<std::size_t, std::uint64_t>> take_opened() const {
    const std::lock_guard lock(mutex_);
    return std::exchange(opened_, {});
  }

  // The numbers of all records, ascending.
  std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> all;
    for (std::size_t shard = 0; shard < sizes_.size(); ++shard) {
      for (std::uint64_t i = 0; i < sizes_[shard]; ++i) all.push_back(number_of(shard, i));
    }
    return all;
  }

  std::atomic<std::uint64_t> more{0};  // records of the last shard
  std::set<std::int64_t> bad = {};
  bool remote = false;
  mutable std::atomic<std::uint64_t> parts{0};  // that were opened

 private:
  class Reader final : public ShardReader {
   public:
    Reader(const CountedShards& set, std::size_t shard, std::uint64_t next)
        : set_(set), shard_(shard), next_(next) {}

    std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
      if (next_ >= set_.size_of(shard_)) return std::nullopt;
      const std::int64_t value = static_cast<std::int64_t>(shard_) * kStride + static_cast<std::int64_t>(next_++);
      if (set_.bad.contains(value)) throw DataError(ErrorCode::kDataCorrupt, "garbled", {.source = "counted"});
      buffer.resize(sizeof value);
      std::memcpy(buffer.data(), &value, sizeof value);
      return RecordView{.fields = {std::span(buffer)}};
    }
    // From 1 on: 0 is the beginning.
    std::uint64_t offset() const noexcept override {
      if (next_ >= set_.size_of(shard_)) return kEnd;
      return set_.has_offsets_ ? next_ + 1 : 0;
    }

   private:
    const CountedShards& set_;
    std::size_t shard_;
    std::uint64_t next_;
  };

  std::vector<std::uint64_t> sizes_;
  bool has_offsets_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::size_t, std::uint64_t>> opened_;  // by mutex_
};

std::shared_ptr<CountedShards> counted_shards(std::vector<std::uint64_t> sizes) {
  return std::make_shared<CountedShards>(std::move(sizes));
}
const std::vector<std::uint64_t> kUneven{7, 0, 23, 1, 40, 12, 5, 31, 3};  // 122 records

// The order as the pages describe it, made without the engine.
std::vector<std::int64_t> model_of(const std::vector<std::uint64_t>& sizes, const ShuffleShardsOptions& how,
                                   std::uint64_t loader_seed, std::uint64_t pass) {
  const std::uint64_t key = mix_seed(mix_seed(loader_seed, how.seed), 0);
  const Permutation order(sizes.size(), mix_seed(mix_seed(mix_seed(loader_seed, how.seed), 0x736861726473), pass));
  std::vector<std::pair<std::size_t, std::uint64_t>> seats;
  std::size_t next = 0;
  while (next < std::min<std::size_t>(how.shards, sizes.size())) seats.push_back({order(next++), 0});
  std::vector<std::int64_t> raw;
  for (std::size_t turn = 0; !seats.empty();) {
    turn %= seats.size();
    auto& [shard, given] = seats[turn];
    if (given < sizes[shard]) {
      raw.push_back(static_cast<std::int64_t>(shard) * kStride + static_cast<std::int64_t>(given++));
      ++turn;
    } else if (next < sizes.size()) {
      seats[turn] = {order(next++), 0};
    } else {
      seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(turn));
    }
  }
  std::vector<std::int64_t> shuffled;
  std::uint64_t size = std::max<std::uint64_t>(1, how.window / 16);
  for (std::uint64_t window = 0, begin = 0; begin < raw.size(); ++window) {
    const std::uint64_t count = std::min<std::uint64_t>(size, raw.size() - begin);
    const Permutation within(count, mix_seed(mix_seed(key, pass), window));
    for (std::uint64_t i = 0; i < count; ++i) shuffled.push_back(raw[begin + within(i)]);
    begin += count;
    size = std::min(2 * size, how.window);
  }
  return shuffled;
}

TEST(ShuffleWindowsTest, GrowToTheirSize) {
  const ShuffleWindows windows(100, 6);
  std::uint64_t begin = 0;
  for (const std::uint64_t size : {6, 12, 24, 48, 96, 100, 100, 100}) {
    const std::uint64_t window = windows.number_of(begin);
    EXPECT_EQ(windows.begin_of(window), begin);
    EXPECT_EQ(windows.begin_of(window + 1), begin + size);
    EXPECT_TRUE(windows.begins(begin));
    for (std::uint64_t i = 1; i < size; ++i) {
      EXPECT_EQ(windows.number_of(begin + i), window);
      EXPECT_FALSE(windows.begins(begin + i));
    }
    begin += size;
  }
}

TEST(ShardFeed, GivesTheOrderThatIsDescribed) {
  for (const std::uint64_t window : {1, 5, 16, 40, 4096}) {
    for (const std::uint64_t shards : {1, 3, 64}) {
      SCOPED_TRACE(testing::Message() << window << ", " << shards);
      const ShuffleShardsOptions how{.window = window, .shards = shards, .seed = 9};
      const auto epochs =
          values_of(Dataset::from(counted_shards(kUneven)).shuffle_shards(how).batch({.global_batch = 10}), 3);
      for (std::uint64_t pass = 0; pass < 3; ++pass)
        EXPECT_EQ(epochs[pass], model_of(kUneven, how, 4, pass)) << pass;
    }
  }
  EXPECT_NE(model_of(kUneven, {}, 4, 0), model_of(kUneven, {}, 4, 1));
}

TEST(ShardFeed, ReadsInOrderWithoutIt) {
  const auto epochs = values_of(Dataset::from(counted_shards({3, 0, 2})).batch({.global_batch = 4}), 2);
  const std::vector<std::int64_t> all{0, 1, 2, 2 * kStride, 2 * kStride + 1};
  EXPECT_EQ(epochs, (std::vector{all, all}));
}

TEST(ShardFeed, MayKeepTheOrderOfEachEpoch) {
  const Dataset plan =
      Dataset::from(counted_shards(kUneven)).shuffle_shards({.window = 16, .reshuffle_each_epoch = false});
  const auto epochs = values_of(plan.batch({.global_batch = 10}), 2);
  EXPECT_EQ(epochs[0], epochs[1]);
}

std::vector<Dataset> plans() {
  const ShuffleShardsOptions how{.window = 32, .shards = 3};
  const auto source = counted_shards(kUneven);
  const auto packed = std::make_shared<CountedShards>(kUneven, /*has_offsets=*/false);
  const Dataset data = Dataset::from(source);
  return {data.shuffle_shards(how).batch({.global_batch = 10}),
          Dataset::from(packed).shuffle_shards(how).batch({.global_batch = 10, .drop_remainder = true}),
          data.batch({.global_batch = 9}),
          data.shuffle_shards(how).take(50).batch({.global_batch = 8}),
          data.shuffle_shards(how).skip(13).shard(2, 1).batch({.global_batch = 4}),
          data.shuffle_shards(how).take(1000).shuffle_window({.size = 9}).batch({.global_batch = 7}),
          data.shuffle_shards(how).batch({.global_batch = 5}).shuffle_window({.size = 4}).take(12),
          data.shuffle_shards({.window = 2, .shards = 64}).batch({.global_batch = 200})};
}

TEST(ShardFeed, IsOneStreamHoweverItIsRun) {
  for (const Dataset& plan : plans()) {
    SCOPED_TRACE(plan.explain());
    const auto whole = cpu_digests_of(plan, {.seed = 4, .epochs = 3, .threads = 1, .prefetch = 0});
    ASSERT_EQ(whole.size() % 3, 0U);
    for (const int replicas : {1, 2, 4}) {
      for (const int prefetch : {0, 2, 8}) {
        EXPECT_EQ(digests_of(plan, replicas, {.seed = 4, .epochs = 3, .threads = 3, .prefetch = prefetch}), whole);
      }
    }
  }
}

TEST(ShardFeed, GoesOnFromEveryStep) {
  for (const Dataset& plan : plans()) {
    SCOPED_TRACE(plan.explain());
    const auto whole = cpu_digests_of(plan, {.seed = 4, .epochs = 3});
    DeviceGroup devices = test_devices(1);
    Loader loader(plan, devices, {.seed = 4, .epochs = 3, .prefetch = 3});
    for (std::size_t step = 0; step <= whole.size(); ++step) {
      const std::vector rest(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end());
      const std::string saved = loader.state().serialize();
      const LoaderState state = LoaderState::parse(saved);
      EXPECT_EQ(state.serialize(), saved);
      const LoaderOptions options{.seed = 4, .epochs = 3, .prefetch = static_cast<int>(step % 3), .start = state};
      EXPECT_EQ(digests_of(plan, 1 + static_cast<int>(step % 2), options), rest) << step;
      LoaderOptions bare = options;
      bare.start = LoaderState{.fingerprint = state.fingerprint, .sequence = step};
      EXPECT_EQ(digests_of(plan, 1, bare), rest) << step << ", without a mark";
      loader.next();
    }
  }
}

// Where another run went on is where this one does.
TEST(ShardFeed, GoesOnAgainAndAgain) {
  for (const Dataset& plan : plans()) {
    const auto whole = cpu_digests_of(plan, {.seed = 4, .epochs = 2});
    std::optional<LoaderState> state;
    for (std::size_t step = 0; step < whole.size(); ++step) {
      DeviceGroup devices = test_devices(1);
      Loader loader(plan, devices, {.seed = 4, .epochs = 2, .start = state});
      StreamDigest digest(devices);
      EXPECT_EQ(digest.next(loader), whole[step]) << step;
      state = LoaderState::parse(loader.state().serialize());
    }
  }
}

TEST(ShardFeed, OpensShardsWhereTheyStand) {
  const auto source = counted_shards(std::vector<std::uint64_t>(20, 100));
  const Dataset plan =
      Dataset::from(source).shuffle_shards({.window = 64, .shards = 4}).batch({.global_batch = 10});
  DeviceGroup devices = test_devices(1);
  LoaderState state;
  {
    Loader loader(plan, devices);
    for (int step = 0; step < 150; ++step) loader.next();
    state = loader.state();
  }
  source->take_opened();
  Loader loader(plan, devices, {.start = state});
  // To the end of the window: it is read before the shards are opened.
  for (std::uint64_t step = 150; step < 157; ++step) EXPECT_EQ(loader.next()->position().step, step);
  const auto opened = source->take_opened();
  ASSERT_GE(opened.size(), 4U);
  for (std::size_t seat = 0; seat < 4; ++seat) EXPECT_GT(opened[seat].second, 0U) << seat;
  EXPECT_LE(opened.size(), 10U) << "none of those that were passed";
  EXPECT_LT(state.serialize().size(), 300U);
}

// A record is not read again because others of its window are needed.
TEST(ShardFeed, ReadsOnlyWhatIsLeftOfItsWindow) {
  const auto source = counted_shards(std::vector<std::uint64_t>(20, 100));
  const Dataset plan =
      Dataset::from(source).shuffle_shards({.window = 64, .shards = 4}).batch({.global_batch = 8});
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices);
  for (int step = 0; step < 100; ++step) loader.next();  // windows: 4, 8, 16, 32, 64, 64 ...
  const std::uint64_t into = (100 * 8 - (4 + 8 + 16 + 32)) % 64;
  const LoaderState state = loader.state();
  Loader next(plan, devices, {.start = state});
  for (std::uint64_t given = into; given < 64; given += 8) {
    next.next();
    loader.next();
    EXPECT_EQ(next.state().serialize(), loader.state().serialize());
  }
  EXPECT_EQ(source->parts, 64 - into);
}

TEST(ShardFeed, RefusesStatesOfOtherRecords) {
  const auto source = counted_shards({30, 30, 30, 30});
  const Dataset plan =
      Dataset::from(source).shuffle_shards({.window = 16, .shards = 2}).batch({.global_batch = 4});
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices);
  for (int step = 0; step < 11; ++step) loader.next();
  const LoaderState state = loader.state();
  const std::size_t steps = state.mark.find(';');
  ASSERT_NE(steps, std::string::npos) << state.mark;
  for (const char* other : {";", ";1:1", ";0:1:11", ";1:0:11", ";1:9:111111111", ";1:2:111", ";1:1:1?",
                            ";1:2:zz11", ";1:1:00000011", ";ffffffffffffffff:8:zzzzzzzz"}) {
    LoaderState changed = state;
    changed.mark = state.mark.substr(0, steps) + other;
    EXPECT_THROW(Loader(plan, devices, {.start = changed}).next(), ConfigError) << other;
  }
}

TEST(ShardFeed, HasStatesOfBoundedSize) {
  const auto source = counted_shards(std::vector<std::uint64_t>(64, 300));
  const Dataset plan =
      Dataset::from(source).shuffle_shards({.window = 512, .shards = 64}).batch({.global_batch = 64});
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices);
  std::size_t largest = 0;
  while (loader.next()) largest = std::max(largest, loader.state().serialize().size());
  EXPECT_LE(largest, 4096U);
}

TEST(ShardFeed, GivesEachRecordOnceAnEpoch) {
  const auto source = counted_shards(kUneven);
  for (const bool in_order : {true, false}) {
    DeviceGroup devices = test_devices(2);
    Loader loader(Dataset::from(source).shuffle_shards({.window = 32}).batch({.global_batch = 7}), devices,
                  {.epochs = 3, .prefetch = 4, .in_order = in_order});
    Ledger ledger;
    std::uint64_t epoch = 0;
    for (bool more = true; more;) {
      for (int r = 0; r < 2; ++r) {
        const auto batch = loader.next(r);
        more = batch.has_value();
        if (!batch) continue;
        EXPECT_GE(batch->position().epoch, epoch) << "none of the next epoch comes before";
        epoch = batch->position().epoch;
        ledger.add(*batch, r);
      }
    }
    for (const std::uint64_t one : {0, 1, 2}) {
      EXPECT_EQ(ledger.find_breach(one, {.records = source->numbers()}), std::nullopt);
    }
  }
}

TEST(ShardFeed, ServesPartsOfAWorld) {
  const auto source = counted_shards(kUneven);
  const Dataset plan = Dataset::from(source).shuffle_shards({.window = 32}).batch({.global_batch = 9});
  Ledger ledger;
  for (const int first : {0, 2}) {
    DeviceGroup devices = test_devices(2);
    Loader loader(plan, devices, {.epochs = 2, .world = {.total = 4, .first = first}});
    for (bool more = true; more;) {
      for (int r = 0; r < 2; ++r) {
        const auto batch = loader.next(r);
        more = batch.has_value();
        if (batch) ledger.add(*batch, first + r);
      }
    }
  }
  for (const std::uint64_t epoch : {0, 1}) {
    EXPECT_EQ(ledger.find_breach(epoch, {.records = source->numbers()}), std::nullopt);
  }
}

TEST(ShardFeed, TellsWhereAnEpochEnds) {
  const Dataset plan =
      Dataset::from(counted_shards({25})).shuffle_shards({.window = 8}).batch({.global_batch = 10});
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices, {.epochs = 2});
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto batch = loader.next(0, epoch);
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->position().last_of_epoch, step == 2);
      EXPECT_EQ(batch->examples(), step == 2 ? 5 : 10);
    }
    EXPECT_FALSE(loader.next(0, epoch));
  }
  EXPECT_EQ(loader.steps_per_epoch(), 3U);
}

TEST(ShardFeed, NamesBadRecordsAndSkipsThem) {
  const auto source = counted_shards(kUneven);
  source->bad = {2 * kStride + 5, 4 * kStride};
  const Dataset plan =
      Dataset::from(source).shuffle_shards({.window = 32, .shards = 3}).batch({.global_batch = 10});
  EXPECT_THAT(error_of([&] { values_of(plan); }).what(), HasSubstr("shard-"));
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices, {.epochs = 2, .errors = {.on_error = OnError::kSkip}});
  std::uint64_t examples = 0;
  while (const auto batch = loader.next()) examples += static_cast<std::uint64_t>(batch->examples());
  EXPECT_EQ(examples, 2U * 120U);
  EXPECT_EQ(loader.stats().bad_records, 4U);
}

// One record in fifty is large: buffers that are used again must not all become as large.
TEST(ShardFeed, HoldsNoMoreThanItsWindows) {
  class Sizes final : public ShardedSource {
   public:
    Sizes() {
      info_.name = "sizes";
      info_.fields = {{.name = "size", .dtype = DType::kU8, .shape = {1}},
                      {.name = "bytes", .dtype = DType::kU8, .shape = {Shape::kDynamic}}};
      info_.fingerprint = 19;
    }
    std::size_t shards() const noexcept override { return 1; }
    bool is_remote() const noexcept override { return false; }
    std::string shard_name(std::size_t /*shard*/) const override { return "sizes"; }
    std::uint64_t shard_bytes(std::size_t /*shard*/) const override { return 5'000; }
    std::unique_ptr<ShardReader> open_shard(std::size_t /*shard*/, std::uint64_t /*offset*/) const override {
      class Reader final : public ShardReader {
       public:
        std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
          const std::size_t size = ++given_ % 50 == 0 ? 1'000'000 : 1'000;
          if (buffer.size() < size + 1) buffer.resize(size + 1);
          buffer[size] = static_cast<std::byte>(given_ % 251);
          buffer[0] = buffer[size];
          return given_ > 5'000 ? std::nullopt
                                : std::optional(RecordView{.fields = {std::span(buffer).subspan(size, 1),
                                                                      std::span(buffer).first(size)}});
        }
        std::uint64_t offset() const noexcept override { return given_ > 5'000 ? kEnd : 0; }

       private:
        std::size_t given_ = 0;
      };
      return std::make_unique<Reader>();
    }
  };
  const Dataset plan =
      Dataset::from(std::make_shared<Sizes>())
          .shuffle_shards({.window = 200})
          .ragged_batch({.global_batch = 10, .fields = {{.field = "bytes", .max_length = 1'000'000}}});
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices);
  const std::uint64_t fixed = loader.stats().memory_bytes;
  std::uint64_t most = 0;
  while (const auto batch = loader.next()) {
    most = std::max(most, loader.stats().memory_bytes);
    batch->ready().wait();
    const auto first = download_examples<std::uint8_t>(devices[0], *batch, "size");
    EXPECT_EQ(first.size(), static_cast<std::size_t>(batch->examples()));
  }
  EXPECT_LT(most - fixed, std::uint64_t{40} << 20)
      << "two windows hold 8 large ones; all as large would be 400 MB";
}

TEST(ShardFeed, RefusesShardsThatChange) {
  const auto source = counted_shards({20, 20});
  const Dataset plan = Dataset::from(source).shuffle_shards({.window = 4}).batch({.global_batch = 10});
  DeviceGroup devices = test_devices(1);
  Loader loader(plan, devices, {.epochs = 3, .prefetch = 0});
  for (int step = 0; step < 5; ++step) loader.next();
  source->more = 1;
  const Error error = error_of([&] {
    while (loader.next()) {
    }
  });
  EXPECT_THAT(error.what(), HasSubstr("have 41 records in this epoch, and had 40"));
}

TEST(ShardFeed, OpensDistantShardsAhead) {
  const auto near = counted_shards(kUneven), far = counted_shards(kUneven);
  far->remote = true;
  const auto plan = [](const SourcePtr& source) {
    return Dataset::from(source).shuffle_shards({.window = 16, .shards = 2}).batch({.global_batch = 8});
  };
  EXPECT_EQ(cpu_digests_of(plan(far), {.epochs = 2}), cpu_digests_of(plan(near), {.epochs = 2}));
}

TEST(ShardFeed, EndsWithoutRecords) {
  EXPECT_TRUE(cpu_digests_of(Dataset::from(counted_shards({0, 0})).shuffle_shards().batch({.global_batch = 4}),
                             {.epochs = 3})
                  .empty());
  EXPECT_TRUE(
      cpu_digests_of(
          Dataset::from(counted_shards({3})).shuffle_shards().batch({.global_batch = 4, .drop_remainder = true}),
          {.epochs = 3})
          .empty());
}

TEST(ShardFeed, RefusesWhatItCannotDo) {
  const Dataset data = Dataset::from(counted_shards({5}));
  DeviceGroup devices = test_devices(1);
  const auto open = [&](const Dataset& plan, const LoaderOptions& options = {}) {
    return message_of([&] { Loader(plan.batch({.global_batch = 2}), devices, options); });
  };
  EXPECT_THAT(open(data.shuffle()), HasSubstr("shuffle_shards()"));
  EXPECT_THAT(open(Dataset::from(numbers(5)).shuffle_shards()), HasSubstr("shuffle_blocks()"));
  EXPECT_THAT(open(data.take(3).shuffle_shards()), HasSubstr("put it first"));
  EXPECT_THAT(message_of([&] { data.shuffle_shards({.window = 0}); }), HasSubstr("window=0"));
  EXPECT_THAT(message_of([&] { data.shuffle_shards({.shards = 65}); }), HasSubstr("1 to 64"));
  EXPECT_THAT(message_of([&] { data.size(); }), HasSubstr("no known length"));
  EXPECT_TRUE(data.streamed());
  EXPECT_FALSE(data.one_pass());
  const Dataset plan = data.shuffle_shards().batch({.global_batch = 2});
  LoaderState state = Loader(plan, devices).state();
  for (const char* mark : {"0/0", "0/0/", "0/0/9:0:", "0/0/1:5:0.0.0", "1/0/1:0:0.1.0", "0/0/1:0:0.x.0", "x"}) {
    state.mark = mark;
    const Error error = error_of([&] {
      Loader loader(plan, devices, {.start = state});
      loader.next();
    });
    EXPECT_THAT(error.what(), HasSubstr("as it was saved")) << mark;
  }
}

}  // namespace
}  // namespace headrace::test
